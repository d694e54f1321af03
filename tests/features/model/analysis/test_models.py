"""Models by name: as many weights as published, FLOPs of modules written by hand, and names as people type them."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.models import model_named, models, tape_of
from gpuexplore.features.model.analysis.parts import backward_parts, forward_pass
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.analysis.prediction import memory_of_each, predict_model
from gpuexplore.features.model.analysis.training import cache_bytes
from gpuexplore.hardware import target_named

H100 = target_named("h100-sxm5-80gb", ())
PUBLISHED = {  # parameters as model cards' safetensors, torchvision and the papers' code count them
    "bert-base": 109_514_298,
    "bert-large": 335_174_458,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_404_352,  # without the 256 biases of each router, which only choose experts
    "dit-xl-2": 675_129_632,
    "flux.1-dev": 11_901_408_320,
    "falcon-7b": 6_921_720_704,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-1b": 999_885_952,
    "gemma-3-4b": 3_880_263_168,
    "gemma-3-12b": 11_766_034_176,
    "gemma-3-27b": 27_009_346_304,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt3-175b": 174_604_259_328,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "llama-3.2-3b": 3_212_749_824,
    "mixtral-8x22b": 140_630_071_296,
    "phi-3-mini": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "pythia-6.9b": 6_857_302_016,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "sd3-medium": 2_028_328_000,
    "sd3.5-large": 8_056_627_520,
    "resnet-18": 11_689_512,
    "resnet-34": 21_797_672,
    "resnet-101": 44_549_160,
    "resnet-152": 60_192_808,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "tinyllama-1.1b": 1_100_048_384,
    "vit-b-16": 86_567_656,
    "vit-l-16": 304_326_632,
    "whisper-tiny": 37_760_640,
    "whisper-base": 72_593_920,
    "whisper-small": 241_734_912,
    "whisper-medium": 763_857_920,
    "whisper-large-v3": 1_543_490_560,
    "whisper-large-v3-turbo": 808_878_080,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_has_as_many_weights_as_published(name):
    model = model_named(name)

    assert sum(tape_of(model, Training(tokens=min(model.tokens, 64))).weights) == PUBLISHED[name]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3-8b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3-70b"),
        ("Qwen/Qwen2.5-72B", "qwen2.5-72b"),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("openai/whisper-large-v3", "whisper-large-v3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-v2-lite"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"),
        ("google-bert/bert-large-uncased", "bert-large"),
        ("facebook/DiT-XL-2-256", "dit-xl-2"),
        ("black-forest-labs/FLUX.1-dev", "flux.1-dev"),
        ("Qwen3 235B", "qwen3-235b-a22b"),  # the first words of one name
        ("mistral-small", "mistral-small-24b"),
    ],
)
def test_names_as_hugging_face_spells_them_are_read(typed, name):
    assert model_named(typed) is models()[name]


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("lama-3-8b", "llama-3-8b"),
        ("whisper-huge", "whisper-base"),
        ("qwen-72b", "qwen2.5-72b"),
        ("glm-4", "glm-4.5"),
        ("llama-4", "llama-4-maverick"),
        ("xyzzy", "117 in `gpuexplore model --help`, such as gpt2"),
    ],
)
def test_an_unknown_name_gets_those_near_it(typed, near):
    with pytest.raises(InvalidInput, match=f"expected .*{near}.*MLP"):
        model_named(typed)


def attended(query, key, value, heads, mask=False):
    """Mix values by products that torch's counter sees."""
    query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    scores = query @ key.transpose(-1, -2)
    mixed = (scores + torch.empty(scores.shape[-2:], device="meta").triu() if mask else scores).softmax(-1) @ value
    return mixed.transpose(1, 2).flatten(2)


class Attended(nn.Module):
    """Attention of Whisper: no bias of the keys; keys and values of `cached` are there already."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.v, self.o = (nn.Linear(width, width) for _ in range(3))
        self.k = nn.Linear(width, width, bias=False)

    def forward(self, x, source=None, cached=None):
        if cached is not None:
            return self.o(attended(self.q(x), cached, cached, self.heads))
        source = x if source is None else source
        return self.o(attended(self.q(x), self.k(source), self.v(source), self.heads))


class WhisperBlock(nn.Module):
    def __init__(self, width, heads, is_decoder):
        super().__init__()
        self.attention = Attended(width, heads)
        self.cross = Attended(width, heads) if is_decoder else None
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if is_decoder else 2))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, sound=None, cache=None, sound_cache=None):
        if cache is None:
            x = x + self.attention(self.norms[0](x))
        else:  # keys and values of one token more are computed, and as many as before are attended to
            own = self.norms[0](x)
            self.attention.k(own), self.attention.v(own)
            x = x + self.attention(own, cached=cache)
        if self.cross:
            x = x + self.cross(self.norms[1](x), sound, sound_cache)
        return x + self.mlp(self.norms[-1](x))


class Whisper(nn.Module):
    """As OpenAI's whisper/model.py has it, with the positions of the encoder counted as transformers does."""

    def __init__(self, width, layers, heads, mels=80, vocabulary=51865):
        super().__init__()
        self.convs = nn.ModuleList((nn.Conv1d(mels, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)))
        self.places = nn.Parameter(torch.empty(1500, width))
        self.encoder = nn.ModuleList(WhisperBlock(width, heads, False) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.table = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(448, width))
        self.decoder = nn.ModuleList(WhisperBlock(width, heads, True) for _ in range(layers))

    def encode(self, sound):
        for conv in self.convs:
            sound = nn.functional.gelu(conv(sound))
        sound = sound.transpose(1, 2) + self.places
        for block in self.encoder:
            sound = block(sound)
        return self.norms[0](sound)

    def decode(self, tokens, sound=None, cache=None, sound_cache=None):
        x = self.table(tokens) + self.positions[: tokens.shape[1]]
        for block in self.decoder:
            x = block(x, sound, cache, sound_cache)
        return self.norms[1](x)

    def logits(self, x):
        return x @ self.table.weight.T


class DitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.made = nn.Linear(width, 6 * width)

    def forward(self, x, c):
        shift, scale, gate, *more = self.made(nn.functional.silu(c))[:, None].chunk(6, -1)
        norm = nn.functional.layer_norm
        own = norm(x, x.shape[-1:]) * (1 + scale) + shift
        x = x + gate * self.out(attended(*self.qkv(own).chunk(3, -1), self.heads))
        return x + more[2] * self.mlp(norm(x, x.shape[-1:]) * (1 + more[1]) + more[0])


class Dit(nn.Module):
    """As facebookresearch/DiT's models.py has it, with its positions counted among the parameters."""

    def __init__(self, side, width=1152, layers=28, heads=16):
        super().__init__()
        self.cut = nn.Conv2d(4, width, 2, 2)
        self.places = nn.Parameter(torch.empty(side**2 // 4, width))
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(1001, width)
        self.blocks = nn.ModuleList(DitBlock(width, heads) for _ in range(layers))
        self.made, self.last = nn.Linear(width, 2 * width), nn.Linear(width, 32)

    def forward(self, image, time, label):
        x = self.cut(image).flatten(2).transpose(1, 2) + self.places
        c = self.time(time) + self.label(label)
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.made(nn.functional.silu(c))[:, None].chunk(2, -1)
        return self.last(nn.functional.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift)


class Stream(nn.Module):
    """The weights of one stream, image or text, in a block of joint attention; the last block has few for text."""

    def __init__(self, width, head, *, is_last=False):
        super().__init__()
        self.made = nn.Linear(width, (2 if is_last else 6) * width)
        self.qkv = nn.Linear(width, 3 * width)
        self.norms = nn.ModuleList(nn.RMSNorm(head) for _ in range(2 if head else 0))
        if not is_last:
            self.out = nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class WithText(nn.Module):
    """As Stability's mmdit.py and Black Forest Labs' model.py have it; rotary angles are no products."""

    def __init__(self, width, heads, blocks, *, single=0, pooled=2048, head=0, guided=False):
        super().__init__()
        self.heads, self.width = heads, width
        vectors = [256, pooled, *([256] if guided else [])]
        self.vectors = nn.ModuleList(
            nn.Sequential(nn.Linear(size, width), nn.SiLU(), nn.Linear(width, width)) for size in vectors
        )
        self.cut, self.text = nn.Linear(64, width), nn.Linear(4096, width)
        last = [not single and at == blocks - 1 for at in range(blocks)]
        self.images = nn.ModuleList(Stream(width, head) for _ in range(blocks))
        self.texts = nn.ModuleList(Stream(width, head, is_last=each) for each in last)
        self.single = nn.ModuleList()
        for _ in range(single):
            made = [nn.Linear(width, 3 * width), nn.Linear(width, 7 * width), nn.Linear(5 * width, width)]
            self.single.append(nn.ModuleList([*made, nn.RMSNorm(head), nn.RMSNorm(head)]))
        self.made, self.last = nn.Linear(width, 2 * width), nn.Linear(width, 64)

    def forward(self, image, text, *vectors):
        c = sum(part(vector) for part, vector in zip(self.vectors, vectors, strict=True))
        both = [self.cut(image), self.text(text)]
        for streams in zip(self.images, self.texts, strict=True):
            for stream in streams:
                stream.made(c)
            parts = [stream.qkv(x).chunk(3, -1) for stream, x in zip(streams, both, strict=True)]
            mixed = attended(*(torch.cat(pair, 1) for pair in zip(*parts, strict=True)), self.heads)
            mixed = mixed.split([each.shape[1] for each in both], 1)
            both = [
                x + stream.mlp(stream.out(own)) if hasattr(stream, "mlp") else x
                for stream, x, own in zip(streams, both, mixed, strict=True)
            ]
        x = torch.cat(both, 1)
        for made, into, out, *_ in self.single:
            made(c)
            q, k, v, hidden = into(x).split([self.width] * 3 + [4 * self.width], -1)
            x = x + out(torch.cat([attended(q, k, v, self.heads), hidden], -1))
        self.made(c)
        return self.last(x[:, : image.shape[1]])


def counted(compute):
    with FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops()


def flops(parts):
    """Return FLOPs as torch counts them: of attention to all tokens."""
    return sum(part.whole_flop_count * part.count for part in parts)


def tokens_of(*shape):
    return torch.zeros(shape, dtype=torch.long, device="meta")


@pytest.mark.parametrize(("side", "name"), [(32, "dit-xl-2"), (64, "dit-xl-2-512")])
def test_a_diffusion_transformer_computes_what_a_module_of_it_does(side, name):
    with torch.device("meta"):
        made = Dit(side)
        inputs = (torch.empty(2, 4, side, side), torch.empty(2, 256), torch.zeros(2, dtype=torch.long))
    model = model_named(name)
    forward = forward_pass(model, ModelPlan("prefill", batch=2)).parts
    trained = forward_pass(model, ModelPlan("train", batch=2, execution="eager")).parts
    # data have no gradients: the image cut into squares, and the time
    without = 2 * (2 * side**2 // 4 * 16 + 2 * 256) * 1152

    assert sum(tape_of(model, Training()).weights) == sum(weight.numel() for weight in made.parameters())
    assert flops(forward) == pytest.approx(counted(lambda: made(*inputs)), rel=1e-3)
    assert flops([*trained, *backward_parts(trained)]) - without == pytest.approx(
        counted(lambda: made(*inputs).sum().backward()), rel=1e-3
    )
    if side == 32:  # multiply-adds of the paper
        assert flops(forward) / 2 / 2 == pytest.approx(118.6e9, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "sizes", "tokens"),
    [
        ("flux.1-dev", {"width": 3072, "heads": 24, "blocks": 19, "single": 38, "pooled": 768, "head": 128}, 512),
        ("sd3-medium", {"width": 1536, "heads": 24, "blocks": 24}, 333),
        ("sd3.5-large", {"width": 2432, "heads": 38, "blocks": 38, "head": 64}, 333),
    ],
)
def test_a_diffusion_transformer_with_text_computes_what_a_module_of_it_does(name, sizes, tokens):
    is_guided = name == "flux.1-dev"
    with torch.device("meta"):
        made = WithText(**sizes, guided=is_guided)
        vectors = [torch.empty(1, size) for size in (256, sizes.get("pooled", 2048), *([256] if is_guided else []))]
        inputs = (torch.empty(1, 4096, 64), torch.empty(1, tokens, 4096), *vectors)
    model = model_named(name)

    assert sum(tape_of(model, Training()).weights) == sum(weight.numel() for weight in made.parameters())
    assert flops(forward_pass(model, ModelPlan("prefill")).parts) == pytest.approx(
        counted(lambda: made(*inputs)), rel=1e-3
    )
    shared = forward_pass(model, ModelPlan("prefill", gpus=2, tensor_parallel=2)).parts
    assert 2 * flops(shared) == pytest.approx(flops(forward_pass(model, ModelPlan("prefill")).parts), rel=2e-3)
    if is_guided:  # FLOPs of 50 steps as papers on FLUX count them
        assert 50 * flops(forward_pass(model, ModelPlan("prefill")).parts) == pytest.approx(3719.5e12, rel=1e-3)


def test_whisper_computes_what_a_module_of_it_does():
    with torch.device("meta"):
        made = Whisper(384, 4, 6)
        sound = torch.empty(2, 80, 3000)
        cache, sound_cache = torch.empty(2, 101, 384), torch.empty(2, 1500, 384)
    model = model_named("whisper-tiny")
    plan = ModelPlan("serve", batch=2, tokens=100)

    def trained():
        made.logits(made.decode(tokens_of(2, 100), made.encode(sound))).sum().backward()

    prompt = counted(lambda: made.logits(made.decode(tokens_of(2, 100), made.encode(sound))[:, -1]))
    token = counted(lambda: made.logits(made.decode(tokens_of(2, 1), None, cache, sound_cache)))
    steps = forward_pass(model, replace(plan, task="train", execution="eager")).parts

    assert flops(forward_pass(model, plan).parts) == pytest.approx(prompt, rel=1e-3)
    assert flops(forward_pass(model, plan, context=100).parts) == pytest.approx(token, rel=1e-3)
    without = 2 * 2 * 3000 * 240 * 384  # data have no gradients
    assert flops([*steps, *backward_parts(steps)]) - without == pytest.approx(counted(trained), rel=1e-3)


def test_a_transcript_is_fast_and_its_cache_is_mostly_of_the_sound():
    model = model_named("whisper-large-v3")
    found = predict_model(model, ModelPlan("serve", batch=1, answer=200), H100)

    assert (found.plan.tokens, found.fits, found.tokens_a_step) == (0, True, 1)
    assert 0.5 * 1.54e9 * 2 / 3.35e12 < found.decode.time_s.value < 5e-3
    assert cache_bytes(model, 100) == 32 * 2 * 1280 * 2 * (1500 + 100)


def test_layers_with_a_window_keep_and_read_no_more_than_it():
    model = model_named("gemma-3-1b")
    one = 2 * 256 * 2  # bytes of a token's keys and values in a layer

    assert cache_bytes(model, 100) == 26 * 100 * one
    assert cache_bytes(model, 10_000) == (22 * 512 + 4 * 10_000) * one
    few, many = (forward_pass(model, ModelPlan("prefill", tokens=n)).parts for n in (512, 4096))
    attention = [
        sum(part.flop_count * part.count for part in found if part.group == "attention") for found in (few, many)
    ]
    pairs = [512 * 513 / 2 + (n - 512) * 512 for n in (512, 4096)]
    causal = [n * (n + 1) / 2 for n in (512, 4096)]
    assert attention == [pytest.approx(4 * 4 * 256 * (22 * p + 4 * c)) for p, c in zip(pairs, causal, strict=True)]


def test_a_cache_of_windows_takes_less_memory_a_gpu():
    plan = ModelPlan("serve", batch=64, tokens=30_000)
    model = model_named("gemma-3-1b")

    assert memory_of_each(model, plan) < 0.4 * (64 * 30_256 * 26 * 1024)
