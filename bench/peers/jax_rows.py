"""The rows of the benches for JAX: functions of arrays, compiled by the caller."""

import jax
import jax.numpy as jnp

import rows

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


def batch_norm(x, w, b):
    """Over all axes but the last."""
    others = tuple(range(x.ndim - 1))
    centred = x - x.mean(others)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(others) + 1e-5) * w + b


def cross_entropy(x, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(x.astype(jnp.float32)), y[:, None], 1).mean().astype(x.dtype)


FUNCTIONS = {
    "copy": lambda x: x + 1,
    "chain8": lambda x: link(link(x)),
    "abc_exp": lambda a, b, c: jnp.exp(a * b + c),
    "add": lambda a, b: a + b,
    "sum0": lambda x: x.sum(0),
    "sum1": lambda x: x.sum(1),
    "sum_all": lambda x: x.sum(),
    "max1": lambda x: x.max(1),
    "argmax1": lambda x: x.argmax(1),
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "log_softmax": lambda x: jax.nn.log_softmax(x, -1),
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "batch_norm": batch_norm,
    "cross_entropy": cross_entropy,
    "embedding": lambda x, ids: x[ids],
    "matmul_nn": lambda a, b: a @ b,
    "matmul_nt": lambda a, b: a @ b.T,
    "matmul_tn": lambda a, b: a.T @ b,
    "matmul_batch": lambda a, b: a @ b,
    "matmul_nn_gelu": lambda a, b, c: gelu(a @ b + c),
    "matmul_nt_gelu": lambda a, b, c: gelu(a @ b.T + c),
}


def with_gradients(function, fixed):
    """Of the arguments but the last `fixed` ones."""

    def both(seed, *given):
        held = given[len(given) - fixed :]
        y, pull = jax.vjp(lambda *tracked: function(*tracked, *held), *given[: len(given) - fixed])
        return (y, *pull(seed))

    return both


def peer(row, arguments, seeds):
    """Of a ring of arguments, and of the gradients that arrive."""
    op = row["op"]
    function = FUNCTIONS[rows.base(op)]
    if not op.endswith("_grad"):
        compiled = jax.jit(function)
        return lambda turn: (compiled(*arguments[turn]),)
    seeds = [jnp.ones((), arguments[0][0].dtype) if s is None else s for s in seeds]
    compiled = jax.jit(with_gradients(function, 1 if op.startswith(("cross_entropy", "embedding")) else 0))
    return lambda turn: compiled(seeds[turn], *arguments[turn])


# ── Models ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Channels last: XLA's convolution is faster that way on a CPU.
def conv(x, w, stride=1, groups=1):
    padding = [(w.shape[0] // 2,) * 2] * 2
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride,) * 2, padding, dimension_numbers=names, feature_group_count=groups)


def max_pool(x, kernel, stride, padding=0):
    padding = ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0))
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, kernel, kernel, 1), (1, stride, stride, 1), padding)


def mlp_loss(p, x, y):
    x = jax.nn.relu(x @ p[0] + p[1])
    return cross_entropy(jax.nn.relu(x @ p[2] + p[3]) @ p[4] + p[5], y)


def cnn_loss(p, x, y):
    x = max_pool(jax.nn.relu(conv(x, p[0]) + p[1]), 2, 2)
    x = max_pool(jax.nn.relu(conv(x, p[2]) + p[3]), 2, 2)
    return cross_entropy(jax.nn.relu(x.reshape(len(y), -1) @ p[4] + p[5]) @ p[6] + p[7], y)


def gpt_states(p, ids, heads, dtype):
    """What the head reads, products in `dtype`; `p` is without the head."""
    batch, length = ids.shape
    width = p[0].shape[1]
    linear = lambda x, w, b: x.astype(dtype) @ w.astype(dtype) + b.astype(dtype)
    fused = "cudnn" if dtype == jnp.bfloat16 and jax.default_backend() == "gpu" else None
    x = p[0][ids] + p[1]
    for i in range(2, len(p) - 2, 12):
        w1, b1, qkv, bqkv, out, bout, w2, b2, up, bup, down, bdown = p[i : i + 12]
        parts = jnp.split(linear(layer_norm(x, w1, b1), qkv, bqkv), 3, -1)
        q, k, v = (part.reshape(batch, length, heads, width // heads) for part in parts)
        attended = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=fused)
        x = x + linear(attended.reshape(batch, length, width), out, bout)
        x = x + linear(gelu(linear(layer_norm(x, w2, b2), up, bup)), down, bdown)
    return layer_norm(x, p[-2], p[-1])


def gpt_loss(p, ids, y, heads):
    return cross_entropy((gpt_states(p[:-1], ids, heads, jnp.float32) @ p[-1]).reshape(ids.size, -1), y)


def gpt2_loss(p, ids, y, heads):
    narrow = lambda t: t.astype(jnp.bfloat16)
    logits = narrow(gpt_states(p, ids, heads, jnp.bfloat16)) @ narrow(p[0]).T
    return cross_entropy(logits.astype(jnp.float32).reshape(ids.size, -1), y)


def loss_of(row):
    if row["op"] == "gpt_step" or rows.is_gpt2(row["op"]):
        loss = gpt2_loss if rows.is_gpt2(row["op"]) else gpt_loss
        return lambda p, x, y: loss(p, x, y, row["shape"][4])
    return {"mlp_step": mlp_loss, "cnn_step": cnn_loss}[row["op"]]


def training(row, data, parameters):
    """A step per call; `parameters` are used up."""
    rate, decay = rows.learning_rate(row["op"]), 0.01 if row["op"].startswith("gpt") else 0.0
    loss_and_gradients = jax.value_and_grad(loss_of(row))

    def train(p, m, v, t, x, y):
        loss, g = loss_and_gradients(p, x, y)
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


def forward(row, data, parameters):
    compiled = jax.jit(loss_of(row))
    return lambda turn: (compiled(parameters, *data),)


def resnet_logits(p, x, training):
    take = iter(p)

    def unit(x, stride=1):
        w, scale, shift = next(take), next(take), next(take)
        x = conv(x, w, stride)
        # The running statistics are 0 and 1.
        return batch_norm(x, scale, shift) if training else x * ((1 + 1e-5) ** -0.5 * scale) + shift

    x = max_pool(jax.nn.relu(unit(x, 2)), 3, 2, 1)
    for channels, filters in rows.resnet_blocks():
        stride = 1 if channels == filters else 2
        y = unit(jax.nn.relu(unit(x, stride)))
        x = jax.nn.relu(y + (x if channels == filters else unit(x, stride)))
    return x.mean((1, 2)) @ next(take) + next(take)


def resnet_peer(row, data, parameters):
    x, targets = data
    if not row["op"].endswith("_grad"):
        forward = jax.jit(lambda p, x: resnet_logits(p, x, False))
        return lambda turn: (forward(parameters, x),)
    backward = jax.jit(jax.value_and_grad(lambda p, x, y: cross_entropy(resnet_logits(p, x, True), y)))

    def both(turn):
        loss, gradients = backward(parameters, x, targets)
        return (loss, *gradients)

    return both
