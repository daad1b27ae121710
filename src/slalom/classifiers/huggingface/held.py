"""Rows of ids on the device of a model: copied there once, padded there batch by batch.

A batch then costs the processor a few numbers per row, not a few per token.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from slalom.classifiers.huggingface.batching import LongArray, Rows

LARGEST_SURPLUS = 0.05  # of a width


@dataclass(frozen=True, eq=False)
class Held:
    """All rows end to end, on a device."""

    rows: Rows
    ids: Tensor  # (n_tokens,) int32
    types: Tensor | None  # (n_tokens,) int32; None: all of them 0

    def padded(
        self, chosen: LongArray, *, pad: int, multiple: int = 1
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, attention mask and token types of the chosen rows, padded on the right.

        Widths are multiples of `multiple`, unless that takes more than LARGEST_SURPLUS.
        """
        lengths = self.rows.lengths[chosen]
        longest = int(lengths.max())
        surplus = -longest % multiple
        width = longest + surplus if surplus <= LARGEST_SURPLUS * longest else longest
        places = torch.from_numpy(np.stack([self.rows.starts[chosen], lengths])[:, :, None])
        starts, ends = places.to(self.ids.device)
        columns = torch.arange(width, device=self.ids.device)
        mask = columns < ends  # (n_rows, width)
        source = torch.where(mask, starts + columns, 0)
        ids = torch.where(mask, self.ids[source], pad).long()
        if self.types is None:
            return ids, mask.long(), torch.zeros_like(ids)
        return ids, mask.long(), torch.where(mask, self.types[source], 0).long()


def held(rows: Rows, device: torch.device) -> Held:
    types = torch.from_numpy(rows.types).to(device) if rows.types.any() else None
    return Held(rows, torch.from_numpy(rows.ids).to(device), types)
