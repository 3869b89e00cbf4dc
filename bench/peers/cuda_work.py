"""The rows of bench cuda for PyTorch, torch.compile, CUDA graphs, JAX and cuBLASLt.

A peer is a function of the turn that returns what it started to compute. JAX reads torch's memory.
"""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch  # noqa: E402

import rows  # noqa: E402
import torch_rows  # noqa: E402
from torch_rows import Training, numbers_of  # noqa: E402


def is_model(row):
    return row["op"] in rows.MODELS or rows.is_gpt2(row["op"])


def expected(row, device):
    """What a row computes, in f64 where memory allows; none: it is not compared."""
    if is_model(row):
        call = Training(row, device).call(row["op"])
        for _ in range(row["check_calls"]):
            result = call()
        return [result.detach()]
    wide = lambda t: t.double() if t.is_floating_point() else t
    numbers, function = numbers_of(row, device), torch_rows.function_of(row)
    arguments = [wide(t) for t in rows.inputs(row, 0, numbers)]
    if not row["op"].endswith("_grad"):
        return [function(*arguments)]
    seed = rows.arriving(row, 0, numbers)
    tracked = [a.requires_grad_(a.is_floating_point()) for a in arguments]
    return torch_rows.with_gradients(function)(tracked, None if seed is None else wide(seed))


# ── JAX ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
def to_jax(tensor):
    import jax

    if tensor.is_cuda:
        torch.cuda.synchronize()  # the two libraries know nothing of each other's streams
    return jax.dlpack.from_dlpack((tensor if tensor.is_floating_point() else tensor.int()).contiguous())


def strict_jax(row):
    """Products of f32 are products of f32, not of TF32, as in torch and here."""
    import jax

    jax.config.update("jax_default_matmul_precision", "float32" if row["dtype"] == "f32" else None)


def jax_peer(row, ring, device):
    import jax_rows

    strict_jax(row)
    arguments = [[to_jax(a) for a in r] for r in ring]
    if row["op"].startswith("small_adds"):
        return lambda turn: (torch_rows.small_adds(*arguments[turn]),)
    seeds = [None] * len(ring)
    if row["op"].endswith("_grad"):
        seeds = [rows.arriving(row, turn, numbers_of(row, device)) for turn in range(len(ring))]
    return jax_rows.peer(row, arguments, [s if s is None else to_jax(s) for s in seeds])


def jax_training(row, device):
    import jax.numpy as jnp

    import jax_rows

    strict_jax(row)
    numbers = numbers_of(row, device)
    data = [to_jax(t) for t in rows.model_inputs(row, numbers)]
    make = jax_rows.forward if row["op"] == "gpt2_forward" else jax_rows.training
    return make(row, data, [jnp.array(to_jax(p)) for p in rows.start(row, numbers)])


# ── All peers of a row ──────────────────────────────────────────────────────────────────────────────────────────────────
def cublaslt_peers(row, ring):
    """One per algorithm that the library proposes, the first being its own choice."""
    from cublaslt import Product

    product = Product(torch, ring[0][0], ring[0][1], row["op"].startswith("matmul_nt"), *ring[0][2:])
    one = lambda algorithm: lambda turn: (product.run(algorithm, *ring[turn][:2]),)
    return {f"cublaslt{i}": one(algorithm) for i, algorithm in enumerate(product.algorithms)}


def model_makers(row, device):
    def torch_calls(compiled=False):
        call = Training(row, device, compiled=compiled).call(row["op"])
        return lambda turn: (call(),)

    found = {"torch": torch_calls, "jax": lambda: jax_training(row, device)}
    if "compile" in row["peers"]:
        found["compile"] = lambda: torch_calls(compiled=True)
    if "graph" in row["peers"] and device.startswith("cuda"):
        found["graph"] = lambda: Training(row, device, capturable=True).graph()
    return found


def makers(row, device):
    """Peer by name, to functions that make it; what one needs may be missing."""
    if is_model(row):
        return model_makers(row, device)
    ring = [rows.inputs(row, turn, numbers_of(row, device)) for turn in range(row["ring"])]
    found = {"torch": lambda: torch_rows.peer(row, ring, device), "jax": lambda: jax_peer(row, ring, device)}
    if "compile" in row["peers"]:
        found["compile"] = lambda: torch_rows.peer(row, ring, device, compiled=True)
    if row["op"] == "copy":
        found["clone"] = lambda: (lambda turn: (ring[turn][0].clone(),))
    if "cublaslt" in row["peers"] and device.startswith("cuda"):
        found["cublaslt"] = lambda: cublaslt_peers(row, ring)
    return found


def wait(results, device):
    """For all that was started; JAX's work runs on streams of its own."""
    if isinstance(results[0], torch.Tensor):
        if device.startswith("cuda"):
            torch.cuda.synchronize()
    else:
        import jax

        jax.block_until_ready(results)
