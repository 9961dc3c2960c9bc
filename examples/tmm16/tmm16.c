// C += A x B^T on tiles of 16x16 floats; strides count floats from one row to the next.
int tmm16(float *c, const float *a, const float *b, int stride_a, int stride_b, int stride_c) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float sum = c[i * stride_c + j];
      for (int k = 0; k < 16; ++k) sum += a[i * stride_a + k] * b[j * stride_b + k];
      c[i * stride_c + j] = sum;
    }
  }
  return 0;
}
