"""Writes ops.txt: arguments, results and gradients of the catalogue's ops as JAX and Optax compute them in float64.

Run with `pip install "jax[cpu]" optax numpy` (written with jax 0.10.2, optax 0.2.8, numpy 2.4.6):
    python tests/golden/make_goldens.py > tests/golden/ops.txt
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

jax.config.update("jax_enable_x64", True)
random = np.random.default_rng(20)
IGNORED = -100


def normal(*shape):
    return np.asarray(random.standard_normal(shape), dtype=np.float32).astype(np.float64)


def uniform(low, high, *shape):
    return np.asarray(random.uniform(low, high, shape), dtype=np.float32).astype(np.float64)


def line(kind, name, values):
    values = np.asarray(values)
    text = " ".join(str(v) if values.dtype.kind == "i" else repr(float(v)) for v in values.ravel())
    print(f"{kind} {name} {text}".rstrip())


def case(op, options, extents, inputs, function, wrt, is_loss=False, numbers=()):
    """function(*inputs.values()) -> dict of outputs; gradients with respect to wrt of the loss, or of every output
    with an upstream of its own."""
    print("case", op, *[f"{key}={value}" for key, value in options.items()])
    print("extents", *[f"{key}={value}" for key, value in extents.items()])
    names = list(inputs)
    for name in names:
        line("scalar" if name in numbers else "input", name, inputs[name])
    outputs = function(*inputs.values())
    for name, value in outputs.items():
        line("output", name, value)
    if wrt:
        places = [names.index(name) for name in wrt]

        def of(*chosen):
            arguments = list(inputs.values())
            for place, value in zip(places, chosen):
                arguments[place] = value
            return function(*arguments)

        _, pull = jax.vjp(of, *[jnp.asarray(inputs[name]) for name in wrt])
        upstream = {name: jnp.ones(()) if is_loss else normal(*value.shape) for name, value in outputs.items()}
        if not is_loss:
            for name, value in upstream.items():
                line("input", "upstream." + name, value)
            upstream = {name: jnp.asarray(value) for name, value in upstream.items()}
        for name, gradient in zip(wrt, pull(upstream)):
            line("gradient", name, gradient)
    print()


def losses():
    tokens, vocab, hidden = 6, 7, 5

    def cross_entropy(logits, target, weight, reduction, smoothing, z_loss, softcap):
        if softcap:
            logits = softcap * jnp.tanh(logits / softcap)
        valid = target != IGNORED
        place = jnp.where(valid, target, 0)
        hard = optax.softmax_cross_entropy_with_integer_labels(logits, place)
        w = weight[place] if weight is not None else jnp.ones(())
        loss = (1 - smoothing) * w * hard
        if smoothing:
            classes = weight if weight is not None else jnp.ones(vocab)
            loss = loss + smoothing / vocab * optax.softmax_cross_entropy(logits, jnp.broadcast_to(classes, logits.shape))
        loss = jnp.where(valid, loss, 0)
        z = jnp.where(valid, z_loss * jax.scipy.special.logsumexp(logits, axis=-1) ** 2, 0)
        if reduction == "none":
            return {"loss": loss + z}
        if reduction == "sum":
            return {"loss": jnp.sum(loss + z)}
        return {"loss": jnp.sum(loss) / jnp.sum(jnp.where(valid, w, 0)) + jnp.sum(z) / jnp.sum(valid)}

    grid = [
        dict(),
        dict(reduction="sum"),
        dict(reduction="none"),
        dict(smoothing=0.1),
        dict(z_loss=0.01),
        dict(softcap=2),
        dict(class_weight="present"),
        dict(class_weight="present", smoothing=0.2, z_loss=0.05, softcap=3),
        dict(class_weight="present", reduction="none", smoothing=0.2),
    ]
    for options in grid:
        weighted = "class_weight" in options
        reduction = options.get("reduction", "mean")
        numbers = [options.get(name, 0) for name in ("smoothing", "z_loss", "softcap")]
        target = np.asarray(random.integers(0, vocab, tokens))
        target[2] = IGNORED
        inputs = {"logits": 3 * normal(tokens, vocab), "target": target}
        if weighted:
            inputs["weight"] = uniform(0.5, 2, vocab)
        case("cross_entropy", options, dict(tokens=tokens, vocab=vocab), inputs,
             lambda logits, target, weight=None: cross_entropy(logits, target, weight, reduction, *numbers),
             ["logits"], is_loss=reduction != "none")

        inputs = {"x": normal(tokens, hidden), "weight": normal(vocab, hidden), "target": target, "bias": normal(vocab)}
        if weighted:
            inputs["class_weight"] = uniform(0.5, 2, vocab)
        case("linear_cross_entropy", dict(options, bias="present"), dict(tokens=tokens, vocab=vocab, hidden=hidden),
             inputs,
             lambda x, w, target, bias, weight=None: cross_entropy(x @ w.T + bias, target, weight, reduction, *numbers),
             ["x", "weight", "bias"], is_loss=reduction != "none")


def rows():
    tokens, hidden = 4, 9
    extents = dict(tokens=tokens, hidden=hidden)
    case("softmax", {}, dict(tokens=tokens, vocab=hidden), {"x": normal(tokens, hidden)},
         lambda x: {"y": jax.nn.softmax(x)}, ["x"])
    case("log_softmax", {}, dict(tokens=tokens, vocab=hidden), {"x": normal(tokens, hidden)},
         lambda x: {"y": jax.nn.log_softmax(x)}, ["x"])

    def rms_norm(x, weight, offset):
        return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6) * (weight + offset)

    for casting, offset in (("llama", 0), ("gemma", 1), ("none", 0)):
        case("rms_norm", dict(casting=casting, offset=offset), extents,
             {"x": normal(tokens, hidden), "weight": normal(hidden)},
             lambda x, weight: {"y": rms_norm(x, weight, offset)}, ["x", "weight"])
    case("add_rms_norm", {}, extents,
         {"x": normal(tokens, hidden), "residual": normal(tokens, hidden), "weight": normal(hidden)},
         lambda x, residual, weight: {"y": rms_norm(x + residual, weight, 0), "sum": x + residual},
         ["x", "residual", "weight"])
    case("layer_norm", {}, extents, {"x": 10 + normal(tokens, hidden), "weight": normal(hidden), "bias": normal(hidden)},
         lambda x, weight, bias: {"y": jax.nn.standardize(x, axis=-1, epsilon=1e-5) * weight + bias},
         ["x", "weight", "bias"])
    case("swiglu", {}, extents, {"gate": normal(tokens, hidden), "up": normal(tokens, hidden)},
         lambda gate, up: {"y": jax.nn.silu(gate) * up}, ["gate", "up"])
    case("swiglu", dict(packed="on", gate_multiplier=0.75), extents, {"packed": normal(tokens, 2 * hidden)},
         lambda both: {"y": jax.nn.silu(0.75 * both[:, :hidden]) * both[:, hidden:]}, ["packed"])
    for gelu in ("tanh", "erf"):
        case("geglu", dict(gelu=gelu), extents, {"gate": normal(tokens, hidden), "up": normal(tokens, hidden)},
             lambda gate, up: {"y": jax.nn.gelu(gate, approximate=gelu == "tanh") * up}, ["gate", "up"])


def model():
    tokens, heads, channels, vocab = 5, 2, 6, 4

    def rope(x, cos, sin, layout):
        if layout == "interleaved":
            pairs = x[..., 0::2] + 1j * x[..., 1::2]
        else:
            pairs = x[..., : channels // 2] + 1j * x[..., channels // 2 :]
        turned = pairs * (cos + 1j * sin)[:, None, :]
        parts = [turned.real, turned.imag]
        y = jnp.stack(parts, -1).reshape(x.shape) if layout == "interleaved" else jnp.concatenate(parts, -1)
        return {"y": y}

    for layout in ("half_split", "interleaved"):
        case("rope", dict(layout=layout), dict(tokens=tokens, heads=heads, channels=channels),
             {"x": normal(tokens, heads, channels), "cos": uniform(-1, 1, tokens, channels // 2),
              "sin": uniform(-1, 1, tokens, channels // 2)},
             lambda x, cos, sin: rope(x, cos, sin, layout), ["x"])

    ids = np.asarray([3, 1, 3, 0, 1])
    case("embedding", {}, dict(tokens=tokens, vocab=vocab, hidden=3), {"table": normal(vocab, 3), "ids": ids},
         lambda table, ids: {"y": jnp.take(table, ids, axis=0)}, ["table"])

    group, queries, keys = 3, 4, 4
    for mask in ("causal", "none"):

        # jax.nn.dot_product_attention rounds its scores to float32.
        def attention(q, k, v):
            scores = jnp.einsum("hgqc,hkc->hgqk", q, k) / np.sqrt(channels)
            if mask == "causal":
                scores = jnp.where(jnp.tril(jnp.ones((queries, keys), bool)), scores, -jnp.inf)
            return {"y": jnp.einsum("hgqk,hkc->hgqc", jax.nn.softmax(scores), v)}

        case("attention", dict(mask=mask),
             dict(heads=heads, group=group, queries=queries, keys=keys, channels=channels),
             {"q": normal(heads, group, queries, channels), "k": normal(heads, keys, channels),
              "v": normal(heads, keys, channels)}, attention, ["q", "k", "v"])


def optimiser():
    count = 8
    numbers = dict(learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.1)
    numbers = {name: float(np.float32(value)) for name, value in numbers.items()}
    chain = optax.adamw(numbers["learning_rate"], b1=numbers["beta1"], b2=numbers["beta2"], eps=numbers["epsilon"],
                        weight_decay=numbers["weight_decay"])
    parameter = jnp.asarray(normal(count))
    state = chain.init(parameter)
    for step in (1, 2, 3):
        gradient = jnp.asarray(normal(count))
        before = state[0]
        updates, state = chain.update(gradient, state, parameter)
        after = optax.apply_updates(parameter, updates)
        inputs = {"parameter": parameter, "gradient": gradient, "first": before.mu, "second": before.nu, **numbers,
                  "step": float(step)}
        result = {"parameter": after, "first": state[0].mu, "second": state[0].nu}
        case("adamw", {}, dict(elements=count), inputs, lambda *_: result, [], numbers=[*numbers, "step"])
        parameter = after


print("# Written by make_goldens.py: values of JAX and Optax in float64.")
losses()
rows()
model()
optimiser()
