# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""A communication hook of PyTorch's DistributedDataParallel that sends the largest gradients alone.

Of each bucket every rank sends the `ratio` of largest magnitude, as pairs of index and value, to
all ranks; the others are taken for zero. With feedback a rank adds the gradients that it did not
send to those of its next step, so that none is lost, only late. Importing this file does not
import PyTorch.
"""
import math

MOST_ELEMENTS = 2**31 - 1  # Indices are sent as 32 bits.


class Bucket:
    """The state of one DDP bucket on this rank."""

    def __init__(self, count, unsent, gathered):
        self.count = count  # Gradients that a rank sends.
        self.unsent = unsent  # The sum of the gradients not sent so far; None: without feedback.
        self.gathered = gathered  # The pairs of all ranks, a row each.

    def choose(self, gradients):
        """Returns the indices and values to send."""
        candidates = gradients if self.unsent is None else self.unsent.add_(gradients)
        indices = candidates.abs().topk(self.count, sorted=False)[1]
        values = candidates.index_select(0, indices)
        if self.unsent is not None:
            self.unsent.index_fill_(0, indices, 0)
            # An overflow is sent, and the scaler of mixed precision skips the step; kept, it would
            # spoil all later ones.
            self.unsent.nan_to_num_(0, 0, 0)
        return indices, values


def average(gradients, pairs):
    """Writes the mean of the ranks' pairs, added in their order: the same bits on all ranks."""
    gradients.zero_()
    for indices, values in pairs:
        gradients.index_add_(0, indices, values)
    return gradients.div_(len(pairs))


def checked(ratio):
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio <= 1:
        raise ValueError(f"topk: ratio={ratio!r} is the share of gradients to send, a number above 0 and at most 1")
    return ratio


def load_torch():
    try:
        import torch
        import torch.distributed
    except ImportError as error:
        raise ImportError("ztcp.hooks.topk is a hook of PyTorch, which cannot be imported: "
                          f"{error}; install torch into this environment") from error
    if not torch.distributed.is_available():
        raise ImportError("ztcp.hooks.topk needs torch.distributed, which this PyTorch was built without")
    return torch


class TopK:
    def __init__(self, torch, ratio, feedback):
        self.torch, self.ratio, self.feedback = torch, ratio, feedback
        self.buckets = {}  # By place. DDP forms its buckets anew after the first step.

    def bucket_for(self, place, parameters, gradients, ranks):
        # Feedback of other parameters would be added to the wrong gradients.
        owner = (ranks, gradients.dtype, gradients.device, *map(id, parameters))
        known = self.buckets.get(place)
        if known is not None and known[0] == owner:
            return known[1]
        elements = gradients.numel()
        if elements > MOST_ELEMENTS:
            raise ValueError(f"topk: a bucket of {elements} gradients is too large; lower DDP's bucket_cap_mb, or "
                             "split the parameter")
        count = max(1, math.ceil(elements * self.ratio))
        wide = self.wide_type(gradients)
        words = count * (1 + gradients.new_empty(0, dtype=wide).element_size() // 4)
        unsent = gradients.new_zeros(elements, dtype=wide) if self.feedback else None
        made = Bucket(count, unsent, gradients.new_empty((ranks, words), dtype=self.torch.int32))
        self.buckets[place] = (owner, made)
        return made

    def wide_type(self, gradients):
        """Sums of 16-bit gradients are kept and sent as 32 bits."""
        torch = self.torch
        return torch.float64 if gradients.dtype == torch.float64 else torch.float32

    def pack(self, indices, values):
        torch = self.torch
        return torch.cat((indices.to(torch.int32), values.view(torch.int32)))

    def unpack(self, row, count, wide):
        # The copy is aligned for 64 bits.
        return row[:count].long(), row[count:].clone().view(wide)

    def __call__(self, group, bucket):
        torch, gradients = self.torch, bucket.buffer()
        ranks = torch.distributed.get_world_size(group)
        if ranks == 1:
            done = torch.futures.Future()
            done.set_result(gradients)
            return done
        wide = self.wide_type(gradients)
        state = self.bucket_for(bucket.index(), bucket.parameters(), gradients, ranks)
        indices, values = state.choose(gradients)
        rows = list(state.gathered.unbind(0))
        work = torch.distributed.all_gather(rows, self.pack(indices, values.to(wide)), group=group, async_op=True)

        def on_arrival(_):
            pairs = [self.unpack(row, state.count, wide) for row in rows]
            if gradients.dtype == wide:
                return average(gradients, pairs)
            return gradients.copy_(average(torch.empty_like(gradients, dtype=wide), pairs))

        return work.get_future().then(on_arrival)


def topk(ratio=0.01, feedback=True):
    """Returns a hook for DistributedDataParallel.register_comm_hook().

        model.register_comm_hook(None, ztcp.hooks.topk(ratio=0.01))

    The state that register_comm_hook() takes is the model's process group, or None for the default
    one. A hook serves one model.

    ratio: the share of each bucket's gradients that a rank sends, above 0 and at most 1.
    feedback: add the gradients that were not sent to those of the next step. Without it most of them
    are lost. It takes 4 bytes a parameter on each GPU, and begins empty after a restart.
    """
    share = checked(ratio)
    hook = TopK(load_torch(), share, feedback)

    def topk_hook(state, bucket):
        return hook(state, bucket)

    return topk_hook
