"""What a layer is: a Python object whose tensor attributes are its weights.

torch.nn.Module would do more (training, hooks, buffers) and hide more. All that an engine asks of a layer is
to run, to say which weights it wants under which names, and to take exactly those; that fits on this page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import torch


class WeightSlot(NamedTuple):
    """A place for a weight: attribute `attribute` of `owner`."""

    owner: BaseOP
    attribute: str

    @property
    def tensor(self) -> torch.Tensor:
        tensor: torch.Tensor = getattr(self.owner, self.attribute)
        return tensor


class BaseOP(ABC):
    """A layer.

    Its weights are its tensor attributes, then those of attributes that are layers themselves, in the order
    in which __init__ sets them. A name that begins with an underscore is private: neither weight nor
    sub-layer. A weight's full name joins the attributes' names with dots, which is how checkpoints spell it.
    """

    @abstractmethod
    def forward(self, *args: Any) -> Any: ...

    def weight_slots(self, prefix: str = "") -> Iterator[tuple[str, WeightSlot]]:
        """Every weight of this layer and the layers below, with its full name."""
        for name, value in vars(self).items():
            if name.startswith("_"):
                continue
            full_name = f"{prefix}.{name}" if prefix else name
            if isinstance(value, torch.Tensor):
                yield full_name, WeightSlot(self, name)
            elif isinstance(value, BaseOP):
                yield from value.weight_slots(full_name)

    def finish_loading(self) -> None:
        """Called once when all weights are in place, and before the first forward, by whoever runs the model:
        layers may now keep their weights in another layout. After it, weights are not read or loaded again.
        """
        for name, value in vars(self).items():
            if isinstance(value, BaseOP) and not name.startswith("_"):
                value.finish_loading()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Full name -> weight."""
        return {name: slot.tensor for name, slot in self.weight_slots()}

    def load_state_dict(
        self, weights: Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]]
    ) -> None:
        """Put each weight in its place, one pair at a time: a stream is never held as a whole.

        The layer's own tensors say which shape and dtype are expected (they may be on the meta device).
        ValueError that names the weight for one that is unknown, given twice, missing, or of another shape or
        dtype; weights that came before it are in place by then.
        """
        pairs = weights.items() if isinstance(weights, Mapping) else weights
        wanted = dict(self.weight_slots())
        known = set(wanted)
        for name, tensor in pairs:
            slot = wanted.pop(name, None)
            if slot is None:
                fault = "given twice" if name in known else "not part of this model"
                raise ValueError(f"weight {name!r} is {fault}")
            expected = slot.tensor
            if tensor.shape != expected.shape or tensor.dtype != expected.dtype:
                raise ValueError(
                    f"weight {name!r} is {tensor.dtype} {tuple(tensor.shape)}, "
                    f"the model expects {expected.dtype} {tuple(expected.shape)}"
                )
            setattr(slot.owner, slot.attribute, tensor)
        if wanted:
            names = list(wanted)
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ValueError(f"missing weights: {', '.join(names[:3])}{more}")


class StateLessOP(BaseOP):
    """A layer without weights, whatever its attributes are."""

    def weight_slots(self, prefix: str = "") -> Iterator[tuple[str, WeightSlot]]:
        return iter(())


_Layer = TypeVar("_Layer", bound=BaseOP)


class OPList(BaseOP, Generic[_Layer]):
    """Layers under the names 0, 1, 2, ... It is a container: iterate over it and call them."""

    def __init__(self, ops: Iterable[_Layer]) -> None:
        self._ops = list(ops)

    def __iter__(self) -> Iterator[_Layer]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def forward(self, *args: Any) -> Any:
        raise TypeError("an OPList only holds layers: iterate over it and call each")

    def weight_slots(self, prefix: str = "") -> Iterator[tuple[str, WeightSlot]]:
        for index, op in enumerate(self._ops):
            yield from op.weight_slots(f"{prefix}.{index}" if prefix else str(index))

    def finish_loading(self) -> None:
        for op in self._ops:
            op.finish_loading()
