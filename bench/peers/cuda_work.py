"""The rows of bench cuda for PyTorch, torch.compile, CUDA graphs, JAX and cuBLASLt.

A peer is a function of the turn that returns what it started to compute. Inputs are those of bench/cuda: numbers from a
counter; JAX reads torch's memory.
"""

import math
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
WORD = 0xFFFFFFFF


# ── Inputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
def mix(seed, count, device):
    """32 random bits per number, in int64; bench/cuda/inputs.cpp has the same."""
    h = torch.arange(count, device=device, dtype=torch.int64)
    h.mul_(2654435761).add_(seed * 2246822519 + 1).bitwise_and_(WORD)
    h.bitwise_xor_(h >> 16).mul_(0x85EBCA6B).bitwise_and_(WORD)
    h.bitwise_xor_(h >> 13).mul_(0xC2B2AE35).bitwise_and_(WORD)
    return h.bitwise_xor_(h >> 16)


def values(seed, shape, dtype, device):
    h = mix(seed, math.prod(shape), device)
    return ((h >> 8) - (1 << 23)).float().div_(1 << 23).to(dtype).view(shape)


def classes(seed, shape, count, device):
    return (mix(seed, math.prod(shape), device) % count).view(shape)


def inputs(row, turn, device):
    """Input k of a turn has seed 16 k + turn."""
    op, dtype, shape = row["op"], DTYPES[row["dtype"]], row["shape"]
    make = lambda k, shape: values(16 * k + turn, shape, dtype, device)
    if op.startswith("matmul"):
        m, k, n = shape
        found = [make(0, (m, k)), make(1, (n, k) if op.startswith("matmul_nt") else (k, n))]
        return found + ([make(2, (n,))] if op.endswith("_gelu") else [])
    found = [make(0, shape)]
    if op == "abc_exp":
        found += [make(1, shape), make(2, shape)]
    elif op.startswith("small_adds"):
        found.append(make(1, shape))
    elif op.startswith(("layer_norm", "rms_norm")):
        found.append(make(1, shape[1:]))
        if op.startswith("layer_norm"):
            found.append(make(2, shape[1:]))
    elif op.startswith("cross_entropy"):
        found.append(classes(64 + turn, shape[:1], shape[1], device))
    return found


def arriving(row, turn, device):
    """The gradient that arrives at the output; none: the output is a loss."""
    if row["op"].startswith("cross_entropy"):
        return None
    return values(16 * 3 + turn, row["shape"], DTYPES[row["dtype"]], device)


# ── Torch ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
chain = lambda x: (x * 0.5 + 0.25).sin().abs()


def small_adds(x, b):
    for _ in range(1000):
        x = x + b
    return x


# `copy` of ours is x + 1: a copy proper, which some libraries leave to the driver, is the yardstick.
TORCH = {
    "copy": lambda x: x + 1,
    "chain8": lambda x: chain(chain(x)),
    "abc_exp": lambda a, b, c: (a * b + c).exp(),
    "sum0": lambda x: x.sum(0),
    "sum1": lambda x: x.sum(1),
    "sum_all": lambda x: x.sum(),
    "softmax": lambda x: F.softmax(x, -1),
    "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b, 1e-5),
    "rms_norm": lambda x, w: F.rms_norm(x, x.shape[1:], w, 1e-5),
    "cross_entropy": F.cross_entropy,
    "matmul_nn": lambda a, b: a @ b,
    "matmul_nt": lambda a, b: a @ b.T,
    "matmul_nn_gelu": lambda a, b, c: F.gelu(a @ b + c, approximate="tanh"),
    "matmul_nt_gelu": lambda a, b, c: F.gelu(a @ b.T + c, approximate="tanh"),
    "small_adds": small_adds,
    "small_adds_eager": small_adds,
}


def with_gradients(function):
    def both(arguments, seed):
        tracked = [a for a in arguments if a.is_floating_point()]
        y = function(*arguments)
        return (y.detach(), *torch.autograd.grad(y, tracked, seed))

    return both


def torch_peer(row, ring, device, compiled=False):
    op = row["op"].removesuffix("_grad")
    function = torch.compile(TORCH[op], dynamic=False) if compiled else TORCH[op]
    if op == row["op"]:
        return lambda turn: (function(*ring[turn]),)
    both = with_gradients(function)
    tracked = [[a.detach().requires_grad_(a.is_floating_point()) for a in arguments] for arguments in ring]
    seeds = [arriving(row, turn, device) for turn in range(len(ring))]
    return lambda turn: both(tracked[turn], seeds[turn])


def expected(row, device):
    """What a row computes, in f64 where memory allows; none: it is not compared."""
    if row["op"] in ("mlp_step", "gpt_step"):
        step = Training(row, device).step
        for _ in range(row["check_calls"]):
            loss = step()
        return [loss.detach()]
    wide = lambda t: t.double() if t.is_floating_point() else t
    arguments = [wide(t) for t in inputs(row, 0, device)]
    op = row["op"].removesuffix("_grad")
    if op == row["op"]:
        return [TORCH[op](*arguments)]
    seed = arriving(row, 0, device)
    tracked = [a.requires_grad_(a.is_floating_point()) for a in arguments]
    return with_gradients(TORCH[op])(tracked, None if seed is None else wide(seed))


# ── Training ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def start(shapes, device):
    """Parameters in the order of bench/cuda/models.cpp, from a list of shapes; a string is a weight ("1") or bias ("0")."""
    found = []
    for i, (shape, fill) in enumerate(shapes):
        if len(shape) > 1:
            found.append(values(100 + i, shape, torch.float32, device) / math.sqrt(shape[0]))
        else:
            found.append(torch.full(shape, float(fill), device=device))
    return found


def linear_shapes(rows, columns):
    return [((rows, columns), 0), ((columns,), 0)]


def mlp_shapes(row):
    _, inputs_, hidden, outputs = row["shape"]
    return linear_shapes(inputs_, hidden) + linear_shapes(hidden, hidden) + linear_shapes(hidden, outputs)


def gpt_shapes(row):
    _, context, width, layers, _, vocabulary = row["shape"]
    norm = [((width,), 1), ((width,), 0)]
    block = norm + linear_shapes(width, 3 * width) + linear_shapes(width, width) + norm
    block = block + linear_shapes(width, 4 * width) + linear_shapes(4 * width, width)
    return [((vocabulary, width), 0), ((context, width), 0)] + block * layers + norm + [((width, vocabulary), 0)]


def mlp_loss(p, x, targets):
    x = F.relu(x @ p[0] + p[1])
    x = F.relu(x @ p[2] + p[3])
    return F.cross_entropy(x @ p[4] + p[5], targets)


def gpt_loss(p, ids, targets, heads):
    batch, length = ids.shape
    width = p[0].shape[1]
    norm = lambda x, w, b: F.layer_norm(x, (width,), w, b, 1e-5)
    x = p[0][ids] + p[1]
    for i in range(2, len(p) - 3, 12):
        w1, b1, qkv, bqkv, out, bout, w2, b2, up, bup, down, bdown = p[i : i + 12]
        q, k, v = (norm(x, w1, b1) @ qkv + bqkv).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + attended @ out + bout
        x = x + F.gelu(norm(x, w2, b2) @ up + bup, approximate="tanh") @ down + bdown
    return F.cross_entropy((norm(x, p[-3], p[-2]) @ p[-1]).view(batch * length, -1), targets)


def training_inputs(row, device):
    shape = row["shape"]
    if row["op"] == "mlp_step":
        return values(0, shape[:2], torch.float32, device), classes(64, shape[:1], shape[3], device)
    return classes(64, shape[:2], shape[5], device), classes(65, (shape[0] * shape[1],), shape[5], device)


class Training:
    def __init__(self, row, device, capturable=False):
        mlp = row["op"] == "mlp_step"
        self.data = training_inputs(row, device)
        self.parameters = [p.requires_grad_() for p in start((mlp_shapes if mlp else gpt_shapes)(row), device)]
        self.loss_of = mlp_loss if mlp else lambda p, x, y: gpt_loss(p, x, y, row["shape"][4])
        options = {"fused": device.startswith("cuda"), "capturable": capturable}
        adam = torch.optim.Adam if mlp else torch.optim.AdamW
        self.adam = adam(self.parameters, **({"lr": 1e-3} if mlp else {"lr": 3e-4, "weight_decay": 0.01}), **options)

    def step(self):
        self.adam.zero_grad()
        loss = self.loss_of(self.parameters, *self.data)
        loss.backward()
        self.adam.step()
        return loss

    def graph(self):
        """Replays one step that was captured."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.step()

        def replay(turn, training=self):  # whose memory the graph reads
            graph.replay()
            return (loss,)

        return replay


# ── JAX ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
def to_jax(tensor):
    import jax

    if tensor.is_cuda:
        torch.cuda.synchronize()  # the two libraries know nothing of each other's streams
    return jax.dlpack.from_dlpack((tensor if tensor.is_floating_point() else tensor.int()).contiguous())


def jax_functions():
    import jax
    import jax.numpy as jnp

    link = lambda x: jnp.abs(jnp.sin(x * 0.5 + 0.25))
    gelu = jax.nn.gelu

    def layer_norm(x, w, b):
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        y = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return (y * w + b).astype(x.dtype)

    def rms_norm(x, w):
        wide = x.astype(jnp.float32)
        return (wide * jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-5) * w).astype(x.dtype)

    def cross_entropy(x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(x.astype(jnp.float32)), y[:, None], 1).mean().astype(x.dtype)

    return {
        "copy": lambda x: x + 1,
        "chain8": lambda x: link(link(x)),
        "abc_exp": lambda a, b, c: jnp.exp(a * b + c),
        "sum0": lambda x: x.sum(0),
        "sum1": lambda x: x.sum(1),
        "sum_all": lambda x: x.sum(),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "layer_norm": layer_norm,
        "rms_norm": rms_norm,
        "cross_entropy": cross_entropy,
        "matmul_nn": lambda a, b: a @ b,
        "matmul_nt": lambda a, b: a @ b.T,
        "matmul_nn_gelu": lambda a, b, c: gelu(a @ b + c),
        "matmul_nt_gelu": lambda a, b, c: gelu(a @ b.T + c),
    }


def strict_jax(row):
    """Products of f32 are products of f32, not of TF32, as in torch and here."""
    import jax

    jax.config.update("jax_default_matmul_precision", "float32" if row["dtype"] == "f32" else None)


def jax_peer(row, ring, device):
    import jax
    import jax.numpy as jnp

    strict_jax(row)
    op = row["op"]
    if op.startswith("small_adds"):
        return lambda turn, ring=[[to_jax(a) for a in r] for r in ring]: (small_adds(*ring[turn]),)
    arguments = [[to_jax(a) for a in r] for r in ring]
    function = jax_functions()[op.removesuffix("_grad")]
    if not op.endswith("_grad"):
        compiled = jax.jit(function)
        return lambda turn: (compiled(*arguments[turn]),)
    seeds = [arriving(row, turn, device) for turn in range(len(ring))]
    seeds = [jnp.ones((), arguments[0][0].dtype) if s is None else to_jax(s) for s in seeds]
    fixed = 1 if op.startswith("cross_entropy") else 0

    def both(seed, *given):
        held = given[len(given) - fixed :]
        y, pull = jax.vjp(lambda *tracked: function(*tracked, *held), *given[: len(given) - fixed])
        return (y, *pull(seed))

    compiled = jax.jit(both)
    return lambda turn: compiled(seeds[turn], *arguments[turn])


def jax_losses(row):
    import jax
    import jax.numpy as jnp

    f = jax_functions()
    norm, mean_loss, heads = f["layer_norm"], f["cross_entropy"], row["shape"][-2]

    def mlp(p, x, y):
        x = jax.nn.relu(x @ p[0] + p[1])
        return mean_loss(jax.nn.relu(x @ p[2] + p[3]) @ p[4] + p[5], y)

    def gpt(p, ids, y):
        batch, length = ids.shape
        width = p[0].shape[1]
        x = p[0][ids] + p[1]
        for i in range(2, len(p) - 3, 12):
            w1, b1, qkv, bqkv, out, bout, w2, b2, up, bup, down, bdown = p[i : i + 12]
            parts = jnp.split(norm(x, w1, b1) @ qkv + bqkv, 3, -1)
            q, k, v = (part.reshape(batch, length, heads, width // heads) for part in parts)
            x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, length, width) @ out + bout
            x = x + jax.nn.gelu(norm(x, w2, b2) @ up + bup) @ down + bdown
        return mean_loss((norm(x, p[-3], p[-2]) @ p[-1]).reshape(batch * length, -1), y)

    return mlp if row["op"] == "mlp_step" else gpt


def jax_training(row, device):
    import jax
    import jax.numpy as jnp

    strict_jax(row)
    mlp = row["op"] == "mlp_step"
    data = [to_jax(t) for t in training_inputs(row, device)]
    parameters = [jnp.array(to_jax(p)) for p in start((mlp_shapes if mlp else gpt_shapes)(row), device)]
    rate, decay = (1e-3, 0.0) if mlp else (3e-4, 0.01)
    loss_of = jax_losses(row)

    def train(p, m, v, t, x, y):
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        t = t + 1
        m = [0.9 * a + 0.1 * b for a, b in zip(m, g)]
        v = [0.999 * a + 0.001 * b * b for a, b in zip(v, g)]
        move = lambda p, m, v: p * (1 - rate * decay) - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return [move(*all_) for all_ in zip(p, m, v)], m, v, t, loss

    compiled = jax.jit(train, donate_argnums=(0, 1, 2, 3))
    zeros = lambda: [jnp.zeros_like(p) for p in parameters]
    state = [parameters, zeros(), zeros(), jnp.zeros((), jnp.int32)]

    def step(turn):
        *state[:], loss = compiled(*state, *data)
        return (loss,)

    return step


# ── All peers of a row ──────────────────────────────────────────────────────────────────────────────────────────────────
def cublaslt_peers(row, ring):
    """One per algorithm that the library proposes, the first being its own choice."""
    from cublaslt import Product

    product = Product(torch, ring[0][0], ring[0][1], row["op"].startswith("matmul_nt"), *ring[0][2:])
    one = lambda algorithm: lambda turn: (product.run(algorithm, *ring[turn][:2]),)
    return {f"cublaslt{i}": one(algorithm) for i, algorithm in enumerate(product.algorithms)}


def makers(row, device):
    """Peer by name, to functions that make it; what one needs may be missing."""
    if row["op"] in ("mlp_step", "gpt_step"):
        found = {"torch": lambda: (lambda turn, t=Training(row, device): (t.step(),)), "jax": lambda: jax_training(row, device)}
        if device.startswith("cuda"):
            found["graph"] = lambda: Training(row, device, capturable=True).graph()
        return found
    ring = [inputs(row, turn, device) for turn in range(row["ring"])]
    found = {"torch": lambda: torch_peer(row, ring, device), "jax": lambda: jax_peer(row, ring, device)}
    if "compile" in row["peers"]:
        found["compile"] = lambda: torch_peer(row, ring, device, compiled=True)
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
