from tvm.te import TensorSlice as TensorSlice
