"""JAX on the CPU, timed on the work of the benches; prints a JSON object a figure."""

import math
import os

import common
import rows

args = common.options(__doc__)
# JAX has no setting for its CPU threads: it starts one for each core that it may run on, so this precedes the import.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402


def small_add(rounds):
    a, b = jnp.arange(16.0), jnp.ones(16)

    def independent():
        for _ in range(common.CHAIN):
            y = a + b
        y.block_until_ready()

    def chain():
        y = a
        for _ in range(common.CHAIN):
            y = y + b
        y.block_until_ready()

    common.time_adds("small_add", rounds, independent)
    common.time_adds("small_add_chain", rounds, chain)


def weights(key, shape, fan_in):
    bound = fan_in**-0.5
    return {"w": jax.random.uniform(key, shape, minval=-bound, maxval=bound), "b": jnp.zeros(shape[-1])}


def conv_relu_pool(p, x):
    # Channels last: XLA's convolution is faster that way on a CPU.
    x = jax.lax.conv_general_dilated(x, p["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu(x + p["b"])
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def loss_of(net, x, y):
    x = conv_relu_pool(net["conv2"], conv_relu_pool(net["conv1"], x)).reshape(len(y), -1)
    x = jax.nn.relu(x @ net["linear1"]["w"] + net["linear1"]["b"])
    logits = x @ net["linear2"]["w"] + net["linear2"]["b"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()


def adam(net, grads, state):
    m, v, t = state
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    move = lambda p, m, v: p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return jax.tree.map(move, net, m, v), (m, v, t)


def cnn_epoch(args):
    images, labels = common.fashion_mnist(args.data)
    x = jnp.asarray((np.frombuffer(images, np.uint8).reshape(-1, 28, 28, 1) / np.float32(255) - 0.2860) / 0.3530, jnp.float32)
    y = jnp.asarray(np.frombuffer(labels, np.uint8), jnp.int32)
    keys = jax.random.split(jax.random.key(0), 4)
    net = {
        "conv1": weights(keys[0], (3, 3, 1, 16), 9),
        "conv2": weights(keys[1], (3, 3, 16, 32), 144),
        "linear1": weights(keys[2], (1568, 128), 1568),
        "linear2": weights(keys[3], (128, 10), 128),
    }
    zeros = jax.tree.map(jnp.zeros_like, net)
    state = (zeros, zeros, jnp.zeros((), jnp.int32))

    @jax.jit
    def train(net, state, x, y, index):
        loss, grads = jax.value_and_grad(loss_of)(net, x[index], y[index])
        return loss, *adam(net, grads, state)

    def step(batch):
        nonlocal net, state
        loss, net, state = train(net, state, x, y, np.array(batch, np.int32))
        return float(loss)

    common.time_cnn(args, step)


class Numbers:
    def mix(self, seed, shape):
        return rows.mix(seed, np.arange(math.prod(shape), dtype=np.int64)).reshape(shape)

    def values(self, seed, shape):
        return ((self.mix(seed, shape) >> 8) - (1 << 23)).astype(np.float32) / np.float32(1 << 23)

    def classes(self, seed, shape, count):
        return (self.mix(seed, shape) % count).astype(np.int32)


def channels_last(array):
    """Of pictures [n, c, h, w]."""
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array


def inputs_last(kernel):
    """Of kernels [o, i, h, w]: [h, w, i, o]."""
    return kernel.transpose(2, 3, 1, 0) if kernel.ndim == 4 else kernel


def inputs_second(kernel):
    return kernel.transpose(3, 2, 0, 1) if kernel.ndim == 4 else kernel


def single_adds(a, b):
    for _ in range(common.CHAIN):
        y = a + b
    return y


def chains_of_adds(a, b):
    for _ in range(common.CHAIN):
        y = a
        for _ in range(8):
            y = y + b
    return y


ADDS = {"small_add": single_adds, "small_add_chain8": chains_of_adds}


def make_model(row):
    import jax_rows

    numbers = Numbers()
    data = [jnp.asarray(channels_last(a)) for a in rows.model_inputs(row, numbers)]
    parameters = rows.start(row, numbers)
    if row["op"] == "cnn_step":  # whose first matrix reads what is channels last here
        _, size, _, filters, hidden, _ = row["shape"]
        seen = parameters[4].reshape(filters, size // 4, size // 4, hidden)
        parameters[4] = seen.transpose(1, 2, 0, 3).reshape(-1, hidden)
    parameters = [jnp.asarray(inputs_last(p), jnp.float32) for p in parameters]
    make = jax_rows.training if row["op"] in rows.MODELS else jax_rows.resnet_peer
    return make(row, data, parameters)


def make_call(row):
    import jax_rows

    numbers = Numbers()
    arrays = [jnp.asarray(a) for a in rows.inputs(row, 0, numbers)]
    if row["op"] == "conv":
        stride, groups = row["shape"][6:]
        x, w = channels_last(arrays[0]), inputs_last(arrays[1])
        compiled = jax.jit(lambda x, w: jax_rows.conv(x, w, stride, groups))
        return lambda turn: (compiled(x, w),)
    if row["op"] in ADDS:
        return lambda turn: (ADDS[row["op"]](*arrays),)
    if rows.base(row["op"]) not in jax_rows.FUNCTIONS:
        return None
    seed = rows.arriving(row, 0, numbers) if row["op"].endswith("_grad") else None
    return jax_rows.peer(row, [arrays], [seed if seed is None else jnp.asarray(seed)])


def make_row(row):
    model = row["op"] in rows.MODELS or rows.base(row["op"]) == "resnet18"
    call = make_model(row) if model else make_call(row)
    if call is None:
        return None
    back = inputs_second if model else lambda a: a.transpose(0, 3, 1, 2) if row["op"] == "conv" else a
    return common.Served([lambda: jax.block_until_ready(call(0))], lambda results: [back(np.asarray(a)) for a in results])


if args.work == "small_add":
    small_add(args.repeat)
elif args.work == "rows":
    common.serve(make_row)
else:
    cnn_epoch(args)
