// The whole catalogue.
#pragma once
#include "tigon/ops/adamw.hpp"
#include "tigon/ops/attention.hpp"
#include "tigon/ops/cross_entropy.hpp"
#include "tigon/ops/embedding.hpp"
#include "tigon/ops/gated.hpp"
#include "tigon/ops/layer_norm.hpp"
#include "tigon/ops/rms_norm.hpp"
#include "tigon/ops/rope.hpp"
#include "tigon/ops/softmax.hpp"
