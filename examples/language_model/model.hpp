// The language model: its axes, its weights, and the functions that train and use it, every one of them Tigon's.
// Weights, their gradients and running means are f32; what the model computes with is a choice.
#pragma once
#include "tigon/tigon.hpp"

namespace language_model {
using tigon::bf16;
using tigon::Buffer;
using tigon::f32;
using tigon::i32;
using tigon::Tensor;

struct Batch : tigon::axis<"batch"> {};
struct Time : tigon::axis<"time"> {};
struct Keys : tigon::axis<"keys"> {};  // the positions that are attended to
struct Hidden : tigon::axis<"hidden"> {};
struct Heads : tigon::axis<"heads"> {};
struct Channels : tigon::axis<"channels"> {};  // of one head
struct Half : tigon::axis<"half"> {};          // of the channels: one for each pair that is turned
struct Inner : tigon::axis<"inner"> {};        // of the multilayer perceptron
struct Vocab : tigon::axis<"vocab"> {};        // bytes here, tokens in larger models

struct ModelSize {
  std::int64_t layers = 4, hidden = 64, heads = 4, inner = 176, vocab = 256;
  [[nodiscard]] std::int64_t channels() const { return hidden / heads; }
  // Of the weights alone; of what a function of `batch` windows of `context` has besides them.
  [[nodiscard]] tigon::Extents of_weights() const;
  [[nodiscard]] tigon::Extents of_windows(std::int64_t batch, std::int64_t context) const;
};

template <template <class> class Slot>
struct LayerWeights {
  TIGON_ARGS(LayerWeights,                                  //
             (Slot<f32(Hidden)>, attention_norm),           //
             (Slot<f32(Heads, Channels, Hidden)>, query),   //
             (Slot<f32(Heads, Channels, Hidden)>, key),     //
             (Slot<f32(Heads, Channels, Hidden)>, value),   //
             (Slot<f32(Hidden, Heads, Channels)>, output),  //
             (Slot<f32(Hidden)>, inner_norm),               //
             (Slot<f32(Inner, Hidden)>, gate),              //
             (Slot<f32(Inner, Hidden)>, up),                //
             (Slot<f32(Hidden, Inner)>, down));
};

template <template <class> class Slot>
struct Weights {
  TIGON_ARGS(Weights,                                    //
             (Slot<f32(Vocab, Hidden)>, embedding),      //
             (std::vector<LayerWeights<Slot>>, layers),  //
             (Slot<f32(Hidden)>, final_norm),            //
             (Slot<f32(Vocab, Hidden)>, head));
};

// visit(tensor, more...) for the same tensor of each of the structs, in order.
template <class Visit, class First, class... More>
void for_each_weight(Visit&& visit, First& first, More&... more) {
  visit(first.embedding, more.embedding...);
  for (std::size_t i = 0; i < first.layers.size(); ++i) {
    visit(first.layers[i].attention_norm, more.layers[i].attention_norm...);
    visit(first.layers[i].query, more.layers[i].query...);
    visit(first.layers[i].key, more.layers[i].key...);
    visit(first.layers[i].value, more.layers[i].value...);
    visit(first.layers[i].output, more.layers[i].output...);
    visit(first.layers[i].inner_norm, more.layers[i].inner_norm...);
    visit(first.layers[i].gate, more.layers[i].gate...);
    visit(first.layers[i].up, more.layers[i].up...);
    visit(first.layers[i].down, more.layers[i].down...);
  }
  visit(first.final_norm, more.final_norm...);
  visit(first.head, more.head...);
}

// The cosines and sines of the angles by which positions turn queries and keys; computed once.
template <template <class> class Slot>
struct Rotation {
  TIGON_OUT(Rotation, (Slot<f32(Time, Half)>, cos), (Slot<f32(Time, Half)>, sin));
};
template <template <class> class Slot>
struct RotationArgs {
  TIGON_ARGS(RotationArgs, (Slot<tigon::scalar<f32>>, base));
};

template <template <class> class Slot>
struct LossArgs {
  TIGON_ARGS(LossArgs,                           //
             (Weights<Slot>, weights),           //
             (Slot<f32(Time, Half)>, cos),       //
             (Slot<f32(Time, Half)>, sin),       //
             (Slot<i32(Batch, Time)>, bytes),    //
             (Slot<i32(Batch, Time)>, target));  // -100 where nothing is to be predicted
};

template <template <class> class Slot>
struct NextArgs {
  TIGON_ARGS(NextArgs,                          //
             (Weights<Slot>, weights),          //
             (Slot<f32(Time, Half)>, cos),      //
             (Slot<f32(Time, Half)>, sin),      //
             (Slot<i32(Batch, Time)>, bytes),   //
             (Slot<tigon::scalar<i32>>, last),  // the position whose successor is asked for
             (Slot<tigon::scalar<f32>>, temperature));
};

template <template <class> class Slot>
struct UpdateArgs {
  TIGON_ARGS(UpdateArgs,                                 //
             (Weights<Slot>, weights),                   //
             (Weights<Slot>, gradients),                 //
             (Weights<Slot>, first),                     //
             (Weights<Slot>, second),                    //
             (Slot<tigon::scalar<f32>>, learning_rate),  //
             (Slot<tigon::scalar<f32>>, step));          // 1 at the first update
};
// Every new weight and running mean is written over the old one.
template <template <class> class Slot>
struct UpdateOut {
  TIGON_OUT(UpdateOut,                                                           //
            (Weights<tigon::InPlace<"weights", Slot>::template slot>, weights),  //
            (Weights<tigon::InPlace<"first", Slot>::template slot>, first),      //
            (Weights<tigon::InPlace<"second", Slot>::template slot>, second),    //
            (Slot<f32()>, gradient_norm));
};

// Angles of the rotary embedding.
tigon::Function<RotationArgs, Rotation<Tensor>> rotation();

// Activations, and weights in products with them, are rounded to Number: f32 or bf16. Sums and the loss are f32.
// The mean over all bytes of -log p(target), in nats; what training differentiates.
template <class Number = f32>
tigon::Function<LossArgs, Tensor<f32()>> training_loss();
// Their sum, for measuring.
template <class Number = f32>
tigon::Function<LossArgs, Tensor<f32()>> total_loss();
// The probabilities of the byte after position `last`.
template <class Number = f32>
tigon::Function<NextArgs, Tensor<f32(Batch, Vocab)>> next_byte();

// AdamW on every weight, with the gradient's norm clipped to 1.
tigon::Function<UpdateArgs, UpdateOut<Tensor>> update();

// How many layers the functions' arguments have.
LossArgs<tigon::Shape> loss_shape(const ModelSize& size);
NextArgs<tigon::Shape> next_shape(const ModelSize& size);
UpdateArgs<tigon::Shape> update_shape(const ModelSize& size);

}  // namespace language_model
