/* hipDeviceAttribute_t: numbers that a device is described by. */
#include "runtime.h"

/* Ranges of numbers whose attributes are 1, or 0: what an emulated device can do, and what it
   cannot, or has none of. */
static const struct {
  int first, last, value;
} CONSTANTS[] = {
    {1, 1, 0},         /* AccessPolicyMaxWindowSize */
    {2, 3, 1},         /* AsyncEngineCount, CanMapHostMemory */
    {4, 4, 0},         /* CanUseHostPointerForRegisteredMem */
    {6, 7, 0},         /* ComputeMode: any number of programs; ComputePreemptionSupported */
    {8, 8, 1},         /* ConcurrentKernels */
    {9, 9, 0},         /* ConcurrentManagedAccess */
    {10, 10, 1},       /* CooperativeLaunch */
    {11, 18, 0},       /* CooperativeMultiDeviceLaunch to KernelExecTimeout */
    {20, 20, 0},       /* LocalL1CacheSupported */
    {24, 24, 0},       /* ManagedMemory: none that moves by itself */
    {29, 29, LARGEST_GRID},
    {30, 31, LARGEST_GRID_YZ},
    {32, 54, 0},       /* the largest surfaces and textures */
    {58, 58, LARGEST_GRID},
    {62, 62, 0},       /* MultiGpuBoardGroupID */
    {65, 66, 0},       /* PageableMemoryAccess */
    {68, 70, 0},       /* PciDeviceId, PciDomainId, PersistingL2CacheMaxSize */
    {73, 73, 0},       /* ReservedSharedMemPerBlock */
    {77, 77, 2},       /* SingleToDoublePrecisionPerfRatio */
    {78, 78, 1},       /* StreamPrioritiesSupported */
    {79, 82, 0},       /* of surfaces and textures, and TccDriver */
    {83, 83, LARGEST_GRID},
    {85, 85, 1},       /* UnifiedAddressing */
    {88, 89, 1},       /* MemoryPoolsSupported, VirtualMemoryManagementSupported */
    {90, 92, 0},       /* HostRegisterSupported, handles of pools, HostNumaId */
    {10007, 10010, 0}, /* CooperativeMultiDeviceUnmatched */
    {10011, 10011, 1}, /* IsLargeBar */
    {10012, 10012, 0}, /* AsicRevision */
    {10013, 10013, 1}, /* CanUseStreamWaitValue */
    {10014, 10014, 0}, /* ImageSupport */
    {10016, 10016, 1}, /* FineGrainSupport */
};

API hipError_t hipDeviceGetAttribute(int *value, int attribute, int number) {
  hipError_t error = value ? device_exists(number) : hipErrorInvalidValue;
  if (error) return done(error);
  for (size_t i = 0; i < sizeof CONSTANTS / sizeof *CONSTANTS; i++)
    if (attribute >= CONSTANTS[i].first && attribute <= CONSTANTS[i].last) {
      *value = CONSTANTS[i].value;
      return hipSuccess;
    }
  switch (attribute) {
  case 5:
  case 10017: *value = (int)device.clock_khz; break;
  case 19: *value = (int)device.l2_bytes; break;
  case 23: *value = (int)device.major; break;
  case 61: *value = (int)device.minor; break;
  case 25: *value = (int)(device.threads_of_unit / device.wave_size); break;
  case 26:
  case 27:
  case 28:
  case 55:
  case 56: *value = (int)device.max_threads; break;
  case 57: *value = (int)device.threads_of_unit; break;
  case 63:
  case 10015: *value = (int)device.compute_units; break;
  case 67: *value = number; break;
  case 71:
  case 72: *value = (int)device.registers; break;
  case 74:
  case 75:
  case 76:
  case 10002: *value = (int)device.lds_bytes; break;
  case 84:
    *value = device.memory_bytes > LARGEST_GRID ? LARGEST_GRID : (int)device.memory_bytes;
    break;
  case 87: *value = (int)device.wave_size; break;
  case 10018: *value = (int)device.dies; break;
  default:
    explain("hipDeviceGetAttribute: attribute %d is not known of an emulated device", attribute);
    return done(hipErrorInvalidValue);
  }
  return hipSuccess;
}
