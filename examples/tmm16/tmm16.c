// C += A x B^T on tiles of M x N x K floats; strides count floats from one row to the next.
// M, N and K come from the description.
#define ROWS (M % 8 == 0 ? 8 : 1)  // whose sums stay in registers

int tmm16(float *c, const float *a, const float *b, int stride_a, int stride_b, int stride_c) {
  float turned[K][N];  // a row of it, and of sums, is a vector register or two
  for (int j = 0; j < N; ++j)
    for (int k = 0; k < K; ++k) turned[k][j] = b[j * stride_b + k];
  for (int first = 0; first < M; first += ROWS) {
    float sums[ROWS][N];
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < N; ++j) sums[i][j] = c[(first + i) * stride_c + j];
    for (int k = 0; k < K; ++k)
      for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < N; ++j) sums[i][j] += a[(first + i) * stride_a + k] * turned[k][j];
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < N; ++j) c[(first + i) * stride_c + j] = sums[i][j];
  }
  return 0;
}
