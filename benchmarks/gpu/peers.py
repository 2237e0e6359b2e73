"""Times eager PyTorch, torch.compile and Liger at the shapes of a results.json, and adds their times to it."""

import json
import sys


def import_or_none(name):
    try:
        return __import__(name, fromlist=["_"])
    except Exception as error:  # a broken installation is no more use than none
        print(f"{name}: left out ({type(error).__name__}: {error})")
        return None


torch = import_or_none("torch")
if torch is None or not torch.cuda.is_available():
    print("no PyTorch with a GPU: nothing to compare with")
    sys.exit(0)
functional = torch.nn.functional
liger = import_or_none("liger_kernel.transformers.functional")
EVICTING = torch.empty(256 << 20, dtype=torch.int8, device="cuda")


def median_microseconds(run, runs=15):
    times = []
    for index in range(runs + 2):
        EVICTING.fill_(index % 100)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        if index >= 2:
            times.append(begin.elapsed_time(end) * 1000)
    return sorted(times)[len(times) // 2]


def normal(*shape, gradient=False):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16).requires_grad_(gradient)


def forward_of(op, extents, gradient):
    """A function of tensors, and the tensors; None where PyTorch has no counterpart."""
    tokens = extents.get("tokens", 0)
    hidden, vocab = extents.get("hidden", 0), extents.get("vocab", 0)
    if op == "rms_norm":
        weight = normal(hidden, gradient=gradient)
        return lambda x, w: functional.rms_norm(x, (x.shape[-1],), w, 1e-6), [normal(tokens, hidden, gradient=gradient), weight]
    if op == "layer_norm":
        arguments = [normal(tokens, hidden, gradient=gradient), normal(hidden, gradient=gradient), normal(hidden, gradient=gradient)]
        return lambda x, w, b: functional.layer_norm(x, (x.shape[-1],), w, b), arguments
    if op == "swiglu":
        return lambda a, b: functional.silu(a) * b, [normal(tokens, hidden, gradient=gradient), normal(tokens, hidden, gradient=gradient)]
    if op == "geglu":
        return lambda a, b: functional.gelu(a, approximate="tanh") * b, [normal(tokens, hidden, gradient=gradient), normal(tokens, hidden, gradient=gradient)]
    if op == "softmax":
        return lambda x: torch.softmax(x, -1), [normal(tokens, vocab, gradient=gradient)]
    if op == "cross_entropy":
        target = torch.randint(0, vocab, (tokens,), device="cuda")
        return lambda x: functional.cross_entropy(x.float(), target), [normal(tokens, vocab, gradient=gradient)]
    if op == "linear_cross_entropy":
        target = torch.randint(0, vocab, (tokens,), device="cuda")
        arguments = [normal(tokens, hidden, gradient=gradient), normal(vocab, hidden, gradient=gradient)]
        return lambda x, w: functional.cross_entropy((x @ w.T).float(), target), arguments
    if op == "embedding":
        ids = torch.randint(0, vocab, (tokens,), device="cuda")
        return lambda table: functional.embedding(ids, table), [normal(vocab, hidden, gradient=gradient)]
    return None


def timed(function, arguments, gradient):
    """Forward, or forward and gradient as one run, as the ops' own gradients are timed."""
    if not gradient:
        with torch.no_grad():
            return median_microseconds(lambda: function(*arguments))
    upstream = torch.ones_like(function(*arguments))
    return median_microseconds(lambda: torch.autograd.grad(function(*arguments), arguments, upstream))


def liger_of(op):
    if liger is None:
        return None
    names = {"rms_norm": "liger_rms_norm", "swiglu": "liger_swiglu", "geglu": "liger_geglu", "softmax": "liger_softmax"}
    function = getattr(liger, names.get(op, ""), None)
    if op == "rms_norm" and function is not None:
        return lambda x, w: function(x, w, 1e-6)
    return function


path = sys.argv[1]
with open(path) as file:
    results = json.load(file)
print(f"{'op':28} {'Tigon':>12} {'eager':>12} {'compiled':>12} {'Liger':>12}   microseconds")
for row in results.get("rows", []):
    if "microseconds" not in row:
        continue
    peers = {}
    try:
        found = forward_of(row["op"], row["extents"], row["gradient"])
        if found is not None:
            function, arguments = found
            peers["eager"] = timed(function, arguments, row["gradient"])
            try:
                peers["compiled"] = timed(torch.compile(function), arguments, row["gradient"])
            except Exception as error:
                print(f"torch.compile of {row['op']}: {type(error).__name__}: {str(error)[:200]}")
            if (of_liger := liger_of(row["op"])) is not None:
                peers["liger"] = timed(of_liger, arguments, row["gradient"])
    except torch.OutOfMemoryError:
        print(f"{row['op']}: a peer ran out of memory")
    torch.cuda.empty_cache()
    row["peers_microseconds"] = peers
    shown = [f"{row['microseconds']:12.1f}"] + [f"{peers[k]:12.1f}" if k in peers else f"{'-':>12}" for k in ("eager", "compiled", "liger")]
    print(f"{row['op'] + (' + gradient' if row['gradient'] else ''):28} " + " ".join(shown), flush=True)
with open(path, "w") as file:
    json.dump(results, file, indent=2)
