"""The engine: everything that a forward pass needs, allocated once, and the forward pass itself.

It is told which requests to run and where their KV goes; who runs when, and which pages are whose, is decided
elsewhere.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import torch

from minisgl.attention import create_attention_backend
from minisgl.core import Batch, Context, Req, SamplingParams, reset_global_ctx, set_global_ctx
from minisgl.distributed import (
    DistributedCommunicator,
    destroy_process_group,
    init_process_group,
    reset_tp_info,
    set_tp_info,
)
from minisgl.engine.config import EngineConfig
from minisgl.engine.graph import GraphRunner
from minisgl.engine.sample import BatchSamplingArgs, Logprobs, Sampler
from minisgl.kvcache import create_kvcache_pool
from minisgl.kvcache.mha_pool import MHAKVCache
from minisgl.models.base import BaseLLMModel
from minisgl.models.register import create_model
from minisgl.models.weight import load_weights
from minisgl.moe import create_moe_backend
from minisgl.utils.device import Event, free_memory, new_event, use_device
from minisgl.utils.logger import init_logger
from minisgl.utils.misc import align_up
from minisgl.utils.torch_utils import default_dtype

logger = init_logger(__name__)

# On the CPU the pool takes no more than this unless it is told its size: other programs live there too.
CPU_POOL_BYTES = 2 * 2**30


class ForwardOutput(NamedTuple):
    """next_tokens: int32 [requests], on the device; next_tokens_cpu: the same, once copy_done has passed.

    logprobs_cpu: about those tokens, if a request asks for it; also once copy_done has passed.
    """

    next_tokens: torch.Tensor
    next_tokens_cpu: torch.Tensor
    copy_done: Event
    logprobs_cpu: Logprobs | None = None


class Engine:
    """Invariants
    - num_pages pages can be handed out; the pool has one more, the dummy page, which no request owns;
    - page_table has max_running_req rows for requests and one more, the dummy's, that points at the dummy
      page;
    - this process's context and rank are this engine's from __init__ to shutdown: one engine a process.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.device = config.torch_device
        use_device(self.device)
        set_tp_info(config.tp_info)
        self.ctx = Context(config.page_size)
        set_global_ctx(self.ctx)
        try:
            init_process_group(config.distributed_init_method, self.device, config.distributed_timeout)
            self._build()
        except BaseException:
            self.shutdown()  # the next attempt in this process must find it as we found it
            raise

    def _build(self) -> None:
        config, model_config = self.config, self.config.model_config
        communicator = DistributedCommunicator()
        free_before = communicator.all_reduce_min(free_memory(self.device))
        self.model = self._load_model()
        self.num_pages = config.num_page_override or self._plan_pages(free_before)
        self.num_pages = communicator.all_reduce_min(self.num_pages)
        self.max_seq_len = min(config.max_seq_len, self.num_pages * config.page_size)
        self.ctx.kv_cache = create_kvcache_pool(
            model_config, self.num_pages + 1, config.page_size, config.dtype, self.device
        )
        # Whole pages are written into a row, so a row is a whole number of pages long.
        self.page_table = torch.zeros(
            (config.max_running_req + 1, align_up(self.max_seq_len, config.page_size)),
            dtype=torch.int32,
            device=self.device,
        )
        self.page_table[config.max_running_req] = self.num_pages * config.page_size
        self.ctx.page_table = self.page_table
        self.dummy_req = Req(
            input_ids=torch.zeros(1, dtype=torch.int32),
            table_idx=config.max_running_req,
            cached_len=0,
            output_len=1,
            uid=-1,
            sampling_params=SamplingParams(),
            cache_handle=None,
        )
        self.attn_backend = create_attention_backend(
            config.attention_backend, model_config, self.ctx.kv_cache
        )
        self.ctx.attn_backend = self.attn_backend
        if model_config.moe is not None:
            self.ctx.moe_backend = create_moe_backend(config.moe_backend)
        seed = communicator.all_reduce_min(secrets.randbits(62))
        self.sampler = Sampler(self.device, model_config.vocab_size, seed)
        self.graph_runner = GraphRunner(
            sizes=config.graph_sizes,
            max_seq_len=self.max_seq_len,
            model=self.model,
            attn_backend=self.attn_backend,
            ctx=self.ctx,
            dummy_req=self.dummy_req,
            device=self.device,
        )

    def _load_model(self) -> BaseLLMModel:
        config = self.config
        with torch.device("meta"), default_dtype(config.dtype):
            model = create_model(config.model_config)
        model.load_state_dict(
            load_weights(config.model_folder, config.model_config, config.dtype, self.device)
        )
        with torch.inference_mode():
            model.finish_loading()
        return model

    def _plan_pages(self, free_before: int) -> int:
        """Pages that fit: `memory_ratio` of what was free before the weights came, less what they took.

        RuntimeError that gives the numbers if not even one does.
        """
        config = self.config
        page_bytes = MHAKVCache.bytes_per_token(config.model_config, config.dtype) * config.page_size
        used = free_before - free_memory(self.device)
        budget = int(free_before * config.memory_ratio) - used
        if self.device.type == "cpu":
            budget = min(budget, CPU_POOL_BYTES)
        pages = budget // page_bytes - 1  # the dummy page
        if pages < 1:
            raise RuntimeError(
                f"no memory for the KV pool: {free_before / 2**30:.2f} GiB were free on {self.device}, the "
                f"weights took {used / 2**30:.2f}, and memory_ratio={config.memory_ratio} leaves "
                f"{budget / 2**30:.2f} GiB for pages of {page_bytes / 2**20:.2f} MiB. "
                "Raise memory_ratio or give num_page_override."
            )
        gib = pages * page_bytes / 2**30
        logger.info("KV pool: %d pages of %d tokens, %.2f GiB", pages, config.page_size, gib)
        return pages

    def forward_batch(self, batch: Batch, args: BatchSamplingArgs) -> ForwardOutput:
        """Run a prepared batch, sample a token for each request, and move the requests on by one step."""
        with torch.inference_mode():
            if self.graph_runner.can_run(batch):
                logits = self.graph_runner.replay(batch)
            else:
                with self.ctx.forward_batch(batch):
                    logits = self.model.forward()[: batch.size]
            for req in batch.reqs:
                req.complete_one()
            next_tokens = self.sampler.sample(logits, args)
            logprobs = self.sampler.logprobs(logits, next_tokens, args)
            next_tokens_cpu = next_tokens.to("cpu", non_blocking=True)
            logprobs_cpu = (
                None
                if logprobs is None
                else Logprobs(*(part.to("cpu", non_blocking=True) for part in logprobs))
            )
        copy_done = new_event(self.device)
        copy_done.record()
        return ForwardOutput(next_tokens, next_tokens_cpu, copy_done, logprobs_cpu)

    def shutdown(self) -> None:
        """Leave the process without a context, a rank and a process group, ready for another engine."""
        # Graphs that captured NCCL's operations keep its communicator: left alive, leaving the group never returns.
        graph_runner = getattr(self, "graph_runner", None)
        if graph_runner is not None:
            graph_runner.release()
        destroy_process_group()
        reset_global_ctx()
        reset_tp_info()
