"""The GPU to compile for."""
import collections

GPUTarget = collections.namedtuple("GPUTarget", "backend arch warp_size")
