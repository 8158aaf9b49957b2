"""PyTorch profiler (Kineto) traces."""
