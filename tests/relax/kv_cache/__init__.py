"""The attentions of TVM's paged KV cache as kernels of ours."""
