/* What of HIP's interface an emulated device has not: each call says so by its name, and fails.

   None of them looks at its arguments, so that all are declared without. */
#include "runtime.h"

#define WITHOUT(name, what)                                                                        \
  API hipError_t name(void) {                                                                      \
    explain("%s: an emulated device is without %s", #name, what);                                  \
    return done(hipErrorNotSupported);                                                             \
  }

#define TEXTURES "textures, and what kernels would read them by"
WITHOUT(hipDeviceGetTexture1DLinearMaxWidth, TEXTURES)
WITHOUT(hipModuleGetTexRef, TEXTURES)
WITHOUT(hipCreateTextureObject, TEXTURES)
WITHOUT(hipDestroyTextureObject, TEXTURES)
WITHOUT(hipGetTextureObjectResourceDesc, TEXTURES)
WITHOUT(hipGetTextureObjectResourceViewDesc, TEXTURES)
WITHOUT(hipGetTextureObjectTextureDesc, TEXTURES)
WITHOUT(hipTexObjectCreate, TEXTURES)
WITHOUT(hipTexObjectDestroy, TEXTURES)
WITHOUT(hipTexObjectGetResourceDesc, TEXTURES)
WITHOUT(hipTexObjectGetResourceViewDesc, TEXTURES)
WITHOUT(hipTexObjectGetTextureDesc, TEXTURES)
WITHOUT(hipBindTextureToMipmappedArray, TEXTURES)
WITHOUT(hipGetTextureReference, TEXTURES)
WITHOUT(hipTexRefGetBorderColor, TEXTURES)
WITHOUT(hipTexRefGetArray, TEXTURES)
WITHOUT(hipTexRefSetAddressMode, TEXTURES)
WITHOUT(hipTexRefSetArray, TEXTURES)
WITHOUT(hipTexRefSetFilterMode, TEXTURES)
WITHOUT(hipTexRefSetFlags, TEXTURES)
WITHOUT(hipTexRefSetFormat, TEXTURES)
WITHOUT(hipBindTexture, TEXTURES)
WITHOUT(hipBindTexture2D, TEXTURES)
WITHOUT(hipBindTextureToArray, TEXTURES)
WITHOUT(hipGetTextureAlignmentOffset, TEXTURES)
WITHOUT(hipUnbindTexture, TEXTURES)
WITHOUT(hipTexRefGetAddress, TEXTURES)
WITHOUT(hipTexRefGetAddressMode, TEXTURES)
WITHOUT(hipTexRefGetFilterMode, TEXTURES)
WITHOUT(hipTexRefGetFlags, TEXTURES)
WITHOUT(hipTexRefGetFormat, TEXTURES)
WITHOUT(hipTexRefGetMaxAnisotropy, TEXTURES)
WITHOUT(hipTexRefGetMipmapFilterMode, TEXTURES)
WITHOUT(hipTexRefGetMipmapLevelBias, TEXTURES)
WITHOUT(hipTexRefGetMipmapLevelClamp, TEXTURES)
WITHOUT(hipTexRefGetMipMappedArray, TEXTURES)
WITHOUT(hipTexRefSetAddress, TEXTURES)
WITHOUT(hipTexRefSetAddress2D, TEXTURES)
WITHOUT(hipTexRefSetMaxAnisotropy, TEXTURES)
WITHOUT(hipTexRefSetBorderColor, TEXTURES)
WITHOUT(hipTexRefSetMipmapFilterMode, TEXTURES)
WITHOUT(hipTexRefSetMipmapLevelBias, TEXTURES)
WITHOUT(hipTexRefSetMipmapLevelClamp, TEXTURES)
WITHOUT(hipTexRefSetMipmappedArray, TEXTURES)
WITHOUT(hipMallocMipmappedArray, TEXTURES)
WITHOUT(hipFreeMipmappedArray, TEXTURES)
WITHOUT(hipGetMipmappedArrayLevel, TEXTURES)
WITHOUT(hipMipmappedArrayCreate, TEXTURES)
WITHOUT(hipMipmappedArrayDestroy, TEXTURES)
WITHOUT(hipMipmappedArrayGetLevel, TEXTURES)
WITHOUT(hipCreateSurfaceObject, TEXTURES)
WITHOUT(hipDestroySurfaceObject, TEXTURES)
WITHOUT(hipMemMapArrayAsync, TEXTURES)

#define SHARED "memory and events that other processes share"
WITHOUT(hipIpcGetMemHandle, SHARED)
WITHOUT(hipIpcOpenMemHandle, SHARED)
WITHOUT(hipIpcCloseMemHandle, SHARED)
WITHOUT(hipIpcGetEventHandle, SHARED)
WITHOUT(hipIpcOpenEventHandle, SHARED)
WITHOUT(hipMemPoolExportToShareableHandle, SHARED)
WITHOUT(hipMemPoolImportFromShareableHandle, SHARED)
WITHOUT(hipMemPoolExportPointer, SHARED)
WITHOUT(hipMemPoolImportPointer, SHARED)
WITHOUT(hipMemExportToShareableHandle, SHARED)
WITHOUT(hipMemImportFromShareableHandle, SHARED)
WITHOUT(hipMemGetHandleForAddressRange, SHARED)

#define FOREIGN "memory and semaphores of other drivers"
WITHOUT(hipImportExternalSemaphore, FOREIGN)
WITHOUT(hipSignalExternalSemaphoresAsync, FOREIGN)
WITHOUT(hipWaitExternalSemaphoresAsync, FOREIGN)
WITHOUT(hipDestroyExternalSemaphore, FOREIGN)
WITHOUT(hipImportExternalMemory, FOREIGN)
WITHOUT(hipExternalMemoryGetMappedBuffer, FOREIGN)
WITHOUT(hipDestroyExternalMemory, FOREIGN)
WITHOUT(hipExternalMemoryGetMappedMipmappedArray, FOREIGN)
WITHOUT(hipGraphAddExternalSemaphoresWaitNode, FOREIGN)
WITHOUT(hipGraphAddExternalSemaphoresSignalNode, FOREIGN)
WITHOUT(hipGraphExternalSemaphoresSignalNodeSetParams, FOREIGN)
WITHOUT(hipGraphExternalSemaphoresWaitNodeSetParams, FOREIGN)
WITHOUT(hipGraphExternalSemaphoresSignalNodeGetParams, FOREIGN)
WITHOUT(hipGraphExternalSemaphoresWaitNodeGetParams, FOREIGN)
WITHOUT(hipGraphExecExternalSemaphoresSignalNodeSetParams, FOREIGN)
WITHOUT(hipGraphExecExternalSemaphoresWaitNodeSetParams, FOREIGN)

#define DRAWN "what a display draws"
WITHOUT(hipGraphicsMapResources, DRAWN)
WITHOUT(hipGraphicsSubResourceGetMappedArray, DRAWN)
WITHOUT(hipGraphicsResourceGetMappedPointer, DRAWN)
WITHOUT(hipGraphicsUnmapResources, DRAWN)
WITHOUT(hipGraphicsUnregisterResource, DRAWN)

#define LINKER "a linker: link the code object before"
WITHOUT(hipLinkAddData, LINKER)
WITHOUT(hipLinkAddFile, LINKER)
WITHOUT(hipLinkComplete, LINKER)
WITHOUT(hipLinkCreate, LINKER)
WITHOUT(hipLinkDestroy, LINKER)

#define FORM "this form of it: take the calls for single words or copies"
WITHOUT(hipGraphAddBatchMemOpNode, FORM)
WITHOUT(hipGraphBatchMemOpNodeGetParams, FORM)
WITHOUT(hipGraphBatchMemOpNodeSetParams, FORM)
WITHOUT(hipGraphExecBatchMemOpNodeSetParams, FORM)
WITHOUT(hipMemcpy3DBatchAsync, FORM)

API const char *hipApiName(uint32_t number) {
  (void)number;
  return "unknown"; /* as of a profiler that nobody has started */
}
