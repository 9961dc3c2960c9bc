/* What the devices are: alike, with the properties that the emulator tells of their chip. */
#include "stream.h"

#include <stdio.h>
#include <string.h>

hipError_t device_exists(int number) {
  hipError_t error = ready();
  bool there = number >= 0 && number < device.count;
  return error ? error : there ? hipSuccess : hipErrorInvalidDevice;
}

static _Thread_local int current;
int current_device(void) { return current; }

/* Which kernels reach what lies on which other device. */
static bool peers[MOST_DEVICES][MOST_DEVICES];
static uint64_t changes;
uint64_t peer_changes(void) { return changes; }
bool reaches(int number, int other) { return number == other || peers[number][other]; }

API hipError_t hipInit(unsigned flags) { return done(flags ? hipErrorInvalidValue : ready()); }

enum { VERSION = 70200000 }; /* of HIP: major, minor, patch in 10^7, 10^5, 1 */
API hipError_t hipDriverGetVersion(int *version) {
  if (!version) return done(hipErrorInvalidValue);
  *version = VERSION;
  return hipSuccess;
}
API hipError_t hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

API hipError_t hipGetDeviceCount(int *count) {
  if (!count) return done(hipErrorInvalidValue);
  hipError_t error = ready();
  *count = error ? 0 : (int)device.count;
  return done(error);
}
API hipError_t hipDeviceGet(int *found, int number) {
  hipError_t error = found ? device_exists(number) : hipErrorInvalidValue;
  if (!error) *found = number;
  return done(error);
}
API hipError_t hipSetDevice(int number) {
  hipError_t error = device_exists(number);
  if (!error) current = number;
  return done(error);
}
API hipError_t hipSetValidDevices(int *numbers, int count) {
  hipError_t error = count < 0 || (count && !numbers) ? hipErrorInvalidValue : ready();
  for (int i = 0; i < count && !error; i++) error = device_exists(numbers[i]);
  if (!error && count) current = numbers[0];
  return done(error);
}
API hipError_t hipGetDevice(int *number) {
  hipError_t error = number ? ready() : hipErrorInvalidValue;
  if (!error) *number = current;
  return done(error);
}
API hipError_t hipSetDeviceFlags(unsigned flags) {
  return done(flags > 31 ? hipErrorInvalidValue : ready());
}
API hipError_t hipGetDeviceFlags(unsigned *flags) {
  if (!flags) return done(hipErrorInvalidValue);
  *flags = 0;
  return done(ready());
}
API hipError_t hipDeviceSynchronize(void) {
  hipError_t error = ready();
  lock();
  if (!error) error = check_safe();
  unlock();
  if (!error) note(HOST_AWAITED_DEVICE, NULL, 0);
  return done(error ? error : fault(current_device()));
}

API hipError_t hipDeviceGetName(char *name, int size, int number) {
  hipError_t error = name && size > 0 ? device_exists(number) : hipErrorInvalidValue;
  if (!error) snprintf(name, size, "%s", device.name);
  return done(error);
}
API hipError_t hipDeviceTotalMem(size_t *bytes, int number) {
  hipError_t error = bytes ? device_exists(number) : hipErrorInvalidValue;
  if (!error) *bytes = device.memory_bytes;
  return done(error);
}
API hipError_t hipDeviceComputeCapability(int *major, int *minor, int number) {
  hipError_t error = major && minor ? device_exists(number) : hipErrorInvalidValue;
  if (!error) *major = (int)device.major, *minor = (int)device.minor;
  return done(error);
}
API hipError_t hipDeviceReset(void) {
  hipError_t error = ready();
  if (!error) release_those_of(current_device());
  return done(error);
}

/* Each device has a bus of its own. */
enum { PLACE_BYTES = 13 };
static void place_of(int number, char place[PLACE_BYTES]) {
  snprintf(place, PLACE_BYTES, "0000:%02x:00.0", number & 0xFF);
}
API hipError_t hipDeviceGetPCIBusId(char *place, int size, int number) {
  hipError_t error = place && size >= PLACE_BYTES ? device_exists(number) : hipErrorInvalidValue;
  if (!error) place_of(number, place);
  return done(error);
}
API hipError_t hipDeviceGetByPCIBusId(int *number, const char *place) {
  hipError_t error = number && place ? ready() : hipErrorInvalidValue;
  if (error) return done(error);
  for (int i = 0; i < device.count; i++) {
    char own[PLACE_BYTES];
    place_of(i, own);
    if (!strcmp(place, own)) {
      *number = i;
      return hipSuccess;
    }
  }
  return done(hipErrorInvalidDevice);
}
static void uuid_of(int number, char uuid[16]) {
  char text[17];
  snprintf(text, sizeof text, "mfmadsl-gpu-%04d", number);
  memcpy(uuid, text, 16);
}
API hipError_t hipDeviceGetUuid(char *uuid, int number) {
  hipError_t error = uuid ? device_exists(number) : hipErrorInvalidValue;
  if (!error) uuid_of(number, uuid);
  return done(error);
}

/* Peers. */
API hipError_t hipDeviceCanAccessPeer(int *can, int number, int peer) {
  hipError_t error = can ? device_exists(number) : hipErrorInvalidValue;
  if (!error) error = device_exists(peer);
  if (!error) *can = number != peer; /* a device is no peer of itself */
  return done(error);
}
static hipError_t change_peer(int peer, bool enabled) {
  hipError_t error = device_exists(peer);
  if (error) return error;
  if (peer == current) return hipErrorInvalidDevice;
  if (peers[current][peer] == enabled)
    return enabled ? hipErrorPeerAccessAlreadyEnabled : hipErrorPeerAccessNotEnabled;
  lock();
  peers[current][peer] = enabled, changes++;
  unlock();
  return hipSuccess;
}
API hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return done(flags ? hipErrorInvalidValue : change_peer(peer, true));
}
API hipError_t hipDeviceDisablePeerAccess(int peer) { return done(change_peer(peer, false)); }

enum { RANK, ACCESS, ATOMICS, ARRAYS }; /* hipDeviceP2PAttr */
API hipError_t hipDeviceGetP2PAttribute(int *value, int attribute, int number, int peer) {
  hipError_t error = value ? device_exists(number) : hipErrorInvalidValue;
  if (!error) error = device_exists(peer);
  if (!error && number == peer) error = hipErrorInvalidDevice;
  if (!error && (attribute < RANK || attribute > ARRAYS)) error = hipErrorInvalidValue;
  if (!error) *value = attribute == ACCESS || attribute == ATOMICS;
  return done(error);
}
API hipError_t hipExtGetLinkTypeAndHopCount(int number, int peer, unsigned *type, unsigned *hops) {
  enum { XGMI = 4 };
  hipError_t error = type && hops ? device_exists(number) : hipErrorInvalidValue;
  if (!error) error = device_exists(peer);
  if (!error && number == peer) error = hipErrorInvalidValue;
  if (!error) *type = XGMI, *hops = 1;
  return done(error);
}

/* hipDeviceProp_tR0600, the structure of ROCm 6 and 7. */
typedef struct {
  char name[256];
  char uuid[16], luid[8];
  unsigned luid_mask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
      computeMode;
  int textures[26], surfaces[14];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
      asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize,
      persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
      hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess,
      concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
      cooperativeLaunch, cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
      maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported,
      timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers,
      reserved[63], hipReserved[32];
  char gcnArchName[256];
  size_t maxSharedMemoryPerMultiProcessor;
  int clockInstructionRate;
  unsigned arch; /* bits of hipDeviceArch_t */
  unsigned *hdpMemFlushCntl, *hdpRegFlushCntl;
  int cooperativeMultiDeviceUnmatched[4], isLargeBar, asicRevision;
} Properties;

API hipError_t hipGetDevicePropertiesR0600(Properties *found, int number) {
  hipError_t error = found ? device_exists(number) : hipErrorInvalidValue;
  if (error) return done(error);
  int threads = (int)device.max_threads;
  *found = (Properties){
      .totalGlobalMem = device.memory_bytes,
      .sharedMemPerBlock = device.lds_bytes,
      .regsPerBlock = (int)device.registers,
      .warpSize = (int)device.wave_size,
      .memPitch = LARGEST_GRID,
      .maxThreadsPerBlock = threads,
      .maxThreadsDim = {threads, threads, threads},
      .maxGridSize = {LARGEST_GRID, LARGEST_GRID_YZ, LARGEST_GRID_YZ},
      .clockRate = (int)device.clock_khz,
      .totalConstMem = LARGEST_GRID,
      .major = (int)device.major,
      .minor = (int)device.minor,
      .multiProcessorCount = (int)device.compute_units,
      .canMapHostMemory = 1,
      .concurrentKernels = 1,
      .asyncEngineCount = 1,
      .streamPrioritiesSupported = 1,
      .memoryPoolsSupported = 1,
      .unifiedAddressing = 1,
      .l2CacheSize = (int)device.l2_bytes,
      .maxThreadsPerMultiProcessor = (int)device.threads_of_unit,
      .sharedMemPerMultiprocessor = device.lds_bytes,
      .regsPerMultiprocessor = (int)device.registers,
      .cooperativeLaunch = 1,
      .sharedMemPerBlockOptin = device.lds_bytes,
      .maxSharedMemoryPerMultiProcessor = device.lds_bytes,
      .arch = 0x7FFFF & ~(1u << 18), /* all that hipDeviceArch_t names, but dynamic parallelism */
  };
  snprintf(found->name, sizeof found->name, "%s", device.name);
  snprintf(found->gcnArchName, sizeof found->gcnArchName, "%s", device.arch);
  found->pciBusID = number;
  uuid_of(number, found->uuid);
  return hipSuccess;
}

/* Programs that were compiled before ROCm 6 ask for another structure. */
static hipError_t old_properties(void) {
  explain(
      "hipGetDeviceProperties: the structure of ROCm 5: compile the program with ROCm 6 or newer");
  return done(hipErrorNotSupported);
}
API hipError_t hipGetDeviceProperties(void *found, int number) {
  (void)found, (void)number;
  return old_properties();
}
API hipError_t hipGetDevicePropertiesR0000(void *found, int number) {
  (void)found, (void)number;
  return old_properties();
}

/* All devices are as near to what is wished. */
API hipError_t hipChooseDevice(int *number, const Properties *wished) {
  hipError_t error = number && wished ? ready() : hipErrorInvalidValue;
  if (!error) *number = 0;
  return done(error);
}
