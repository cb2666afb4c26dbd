# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The models of bench/gpu/train: ResNet-50 and a transformer, plain PyTorch, on made-up data."""
import contextlib
import dataclasses

import torch
from torch import nn
from torch.nn import functional

BATCHES = 4  # Made once on each rank and used in turn.


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * 4
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        return functional.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    """He et al., "Deep Residual Learning for Image Recognition", with the stride in the 3x3 layers
    as torchvision has it. `depths` and `width` are smaller for a try on a CPU."""

    def __init__(self, classes=1000, depths=(3, 4, 6, 3), width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        layers, inputs = [], width
        for number, depth in enumerate(depths):
            for place in range(depth):
                stride = 2 if number > 0 and place == 0 else 1
                layers.append(Bottleneck(inputs, width << number, stride))
                inputs = (width << number) * 4
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        if torch.are_deterministic_algorithms_enabled():
            x = x.contiguous()  # In channels_last the backward pass adds in any order.
        x = functional.max_pool2d(x, 3, 2, padding=1)
        return self.head(self.layers(x).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """A decoder as GPT-2 has it; the head shares the embedding's weights."""

    def __init__(self, vocabulary=32768, width=1024, layers=16, heads=16, length=512):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


@dataclasses.dataclass(frozen=True)
class Size:
    """The sizes of a model and its batch: `full` on a GPU, `tiny` for a trial on a CPU."""
    batch: int
    model: dict
    data: int  # Pixels on a side, or tokens.
    classes: int


def on(device):
    """The context that initialises a model on `device`: a GPU draws 235 M numbers much faster than
    a CPU."""
    return torch.device(device) if device.type == "cuda" else contextlib.nullcontext()


class ResNetTask:
    full = Size(64, {}, 224, 1000)
    tiny = Size(4, {"classes": 10, "depths": (1, 1, 1, 1), "width": 8}, 32, 10)

    def __init__(self, is_tiny, device):
        self.size = self.tiny if is_tiny else self.full
        with on(device):
            self.model = ResNet50(**self.size.model)
        self.model.to(device, memory_format=torch.channels_last)

    def make_batch(self, generator):
        shape = (self.size.batch, 3, self.size.data, self.size.data)
        images = torch.randn(shape, generator=generator, device=generator.device)
        labels = torch.randint(self.size.classes, (self.size.batch,), generator=generator,
                               device=generator.device)
        return images.contiguous(memory_format=torch.channels_last), labels

    @staticmethod
    def optimizer(parameters):
        return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)

    @staticmethod
    def loss(outputs, labels):
        return functional.cross_entropy(outputs.float(), labels)


class TransformerTask:
    full = Size(8, {}, 512, 32768)
    tiny = Size(2, {"vocabulary": 64, "width": 32, "layers": 2, "heads": 2, "length": 16}, 16, 64)

    def __init__(self, is_tiny, device):
        self.size = self.tiny if is_tiny else self.full
        with on(device):
            self.model = Transformer(**self.size.model)
        self.model.to(device)

    def make_batch(self, generator):
        tokens = torch.randint(self.size.classes, (self.size.batch, self.size.data + 1),
                               generator=generator, device=generator.device)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    @staticmethod
    def optimizer(parameters):
        return torch.optim.AdamW(parameters, lr=3e-4)

    @staticmethod
    def loss(outputs, tokens):
        return functional.cross_entropy(outputs.float().flatten(0, 1), tokens.flatten())


def fully_sharded(model):
    """FSDP: each block's parameters are gathered before its use, gradients reduce-scattered."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # PyTorch 2.6.
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    return fully_shard(model, mp_policy=policy)
