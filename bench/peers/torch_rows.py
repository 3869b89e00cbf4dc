"""The rows of the benches for PyTorch, on any device."""

import math

import torch
import torch.nn.functional as F

import rows

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Numbers:
    def __init__(self, device, dtype=torch.float32):
        self.device, self.dtype = device, dtype

    def mix(self, seed, shape):
        return rows.mix(seed, torch.arange(math.prod(shape), device=self.device, dtype=torch.int64))

    def values(self, seed, shape):
        return ((self.mix(seed, shape) >> 8) - (1 << 23)).float().div_(1 << 23).to(self.dtype).view(*shape)

    def classes(self, seed, shape, count):
        return (self.mix(seed, shape) % count).view(*shape)


def numbers_of(row, device):
    return Numbers(device, DTYPES[row["dtype"]])


# ── Ops ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
chain = lambda x: (x * 0.5 + 0.25).sin().abs()


def small_adds(x, b):
    for _ in range(1000):
        x = x + b
    return x


def single_adds(x, b):
    for _ in range(1000):
        y = x + b
    return y


def chains_of_adds(x, b):
    for _ in range(1000):
        y = x
        for _ in range(8):
            y = y + b
    return y


# `copy` of ours is x + 1: a copy proper, which some libraries leave to the driver, is the yardstick.
FUNCTIONS = {
    "copy": lambda x: x + 1,
    "chain8": lambda x: chain(chain(x)),
    "abc_exp": lambda a, b, c: (a * b + c).exp(),
    "add": lambda a, b: a + b,
    "sum0": lambda x: x.sum(0),
    "sum1": lambda x: x.sum(1),
    "sum_all": lambda x: x.sum(),
    "max1": lambda x: x.amax(1),
    "argmax1": lambda x: x.argmax(1),
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b, 1e-5),
    "rms_norm": lambda x, w: F.rms_norm(x, x.shape[1:], w, 1e-5),
    "cross_entropy": F.cross_entropy,
    "embedding": lambda x, ids: F.embedding(ids, x),
    "matmul_nn": lambda a, b: a @ b,
    "matmul_nt": lambda a, b: a @ b.T,
    "matmul_tn": lambda a, b: a.T @ b,
    "matmul_batch": lambda a, b: a @ b,
    "matmul_nn_gelu": lambda a, b, c: F.gelu(a @ b + c, approximate="tanh"),
    "matmul_nt_gelu": lambda a, b, c: F.gelu(a @ b.T + c, approximate="tanh"),
    "small_adds": small_adds,
    "small_adds_eager": small_adds,
    "small_add": single_adds,
    "small_add_recorded": single_adds,
    "small_add_chain8": chains_of_adds,
}


def function_of(row):
    """None where a row is not for this library."""
    op, shape = rows.base(row["op"]), row["shape"]
    if op == "conv":
        return lambda x, w: F.conv2d(x, w, stride=shape[6], padding=shape[5] // 2, groups=shape[7])
    if op == "batch_norm":
        running = torch.zeros(shape[1]), torch.ones(shape[1])
        return lambda x, w, b: F.batch_norm(x, *running, w, b, training=True)
    return FUNCTIONS.get(op)


def with_gradients(function):
    def both(arguments, seed):
        tracked = [a for a in arguments if a.is_floating_point()]
        y = function(*arguments)
        return (y.detach(), *torch.autograd.grad(y, tracked, seed))

    return both


def peer(row, ring, device, compiled=False):
    function = torch.compile(function_of(row), dynamic=False) if compiled else function_of(row)
    if row["op"] == "small_add_recorded":
        ring = [[x.requires_grad_(), b] for x, b in ring]
    if not row["op"].endswith("_grad"):
        return lambda turn: (function(*ring[turn]),)
    both = with_gradients(function)
    tracked = [[a.detach().requires_grad_(a.is_floating_point()) for a in arguments] for arguments in ring]
    seeds = [rows.arriving(row, turn, numbers_of(row, device)) for turn in range(len(ring))]
    return lambda turn: both(tracked[turn], seeds[turn])


# ── Models ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
def mlp_loss(p, x, targets):
    x = F.relu(x @ p[0] + p[1])
    x = F.relu(x @ p[2] + p[3])
    return F.cross_entropy(x @ p[4] + p[5], targets)


def cnn_loss(p, x, targets):
    x = F.max_pool2d(F.relu(F.conv2d(x, p[0], p[1], padding=1)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p[2], p[3], padding=1)), 2)
    x = F.relu(x.flatten(1) @ p[4] + p[5])
    return F.cross_entropy(x @ p[6] + p[7], targets)


def linear(x, w, b):
    """One op, which autocast computes in bf16 as a whole; w is [in, out]."""
    return F.linear(x, w.T, b)


def gpt_states(p, ids, heads):
    """What the head reads; `p` is without it."""
    batch, length = ids.shape
    width = p[0].shape[1]
    norm = lambda x, w, b: F.layer_norm(x, (width,), w, b, 1e-5)
    x = F.embedding(ids, p[0]) + p[1]
    for i in range(2, len(p) - 2, 12):
        w1, b1, qkv, bqkv, out, bout, w2, b2, up, bup, down, bdown = p[i : i + 12]
        q, k, v = linear(norm(x, w1, b1), qkv, bqkv).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + linear(attended, out, bout)
        x = x + linear(F.gelu(linear(norm(x, w2, b2), up, bup), approximate="tanh"), down, bdown)
    return norm(x, p[-2], p[-1])


def gpt_loss(p, ids, targets, heads):
    return F.cross_entropy((gpt_states(p[:-1], ids, heads) @ p[-1]).flatten(0, 1), targets)


def gpt2_loss(p, ids, targets, heads):
    with torch.autocast(ids.device.type, torch.bfloat16):
        return F.cross_entropy((gpt_states(p, ids, heads) @ p[0].T).flatten(0, 1), targets)


def loss_of(row):
    if row["op"] == "gpt_step" or rows.is_gpt2(row["op"]):
        loss = gpt2_loss if rows.is_gpt2(row["op"]) else gpt_loss
        return lambda p, x, y: loss(p, x, y, row["shape"][4])
    return {"mlp_step": mlp_loss, "cnn_step": cnn_loss}[row["op"]]


def last(tensors, channels_last):
    """Pictures and kernels with their channels last in memory, if asked."""
    move = lambda t: t.to(memory_format=torch.channels_last) if channels_last and t.dim() == 4 else t
    return [move(t) for t in tensors]


class Training:
    def __init__(self, row, device, capturable=False, compiled=False, channels_last=False):
        numbers = Numbers(device)
        self.data = last(rows.model_inputs(row, numbers), channels_last)
        self.parameters = [p.requires_grad_() for p in last(rows.start(row, numbers), channels_last)]
        self.loss_of = torch.compile(loss_of(row), dynamic=False) if compiled else loss_of(row)
        language = row["op"].startswith("gpt")
        options = {"lr": rows.learning_rate(row["op"])} | ({"weight_decay": 0.01} if language else {})
        adam = torch.optim.AdamW if language else torch.optim.Adam
        # The fused kernel is torch's fastest.
        self.adam = adam(self.parameters, fused=True, capturable=capturable, **options)

    def step(self):
        self.adam.zero_grad()
        loss = self.loss_of(self.parameters, *self.data)
        loss.backward()
        self.adam.step()
        return loss

    def forward(self):
        with torch.no_grad():
            return self.loss_of(self.parameters, *self.data)

    def losses(self):
        return torch.stack([self.step().detach() for _ in range(rows.LOSSES)])

    def call(self, op):
        """What a call of the row computes."""
        return {"gpt2_forward": self.forward, "gpt2_losses": self.losses}.get(op, self.step)

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


def resnet_logits(p, running, x, training):
    take, statistics = iter(p), iter(running)

    def unit(x, stride=1):
        w, scale, shift = next(take), next(take), next(take)
        x = F.conv2d(x, w, stride=stride, padding=w.shape[2] // 2)
        return F.batch_norm(x, next(statistics), next(statistics), scale, shift, training=training)

    x = F.max_pool2d(F.relu(unit(x, 2)), 3, 2, 1)
    for channels, filters in rows.resnet_blocks():
        stride = 1 if channels == filters else 2
        y = unit(F.relu(unit(x, stride)))
        x = F.relu(y + (x if channels == filters else unit(x, stride)))
    return x.mean((2, 3)) @ next(take) + next(take)


def resnet_peer(row, channels_last):
    gradients = row["op"].endswith("_grad")
    numbers = Numbers("cpu")
    x, targets = last(rows.model_inputs(row, numbers), channels_last)
    p = [t.requires_grad_(gradients) for t in last(rows.start(row, numbers), channels_last)]
    running = [t for w in p if w.dim() == 4 for t in (torch.zeros(w.shape[0]), torch.ones(w.shape[0]))]

    def backward(turn):
        loss = F.cross_entropy(resnet_logits(p, running, x, True), targets)
        return (loss.detach(), *torch.autograd.grad(loss, p))

    def forward(turn):
        with torch.inference_mode():
            return (resnet_logits(p, running, x, False),)

    return backward if gradients else forward
