// A product, for IREE's compiler.
func.func @product(%a: tensor<64x96xf16>, %b: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<64x96xf16>, tensor<96x128xf16>)
                       outs(%none : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %sum : tensor<64x128xf32>
}
