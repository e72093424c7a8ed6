/* Generated from pysim/isa.py and pysim/params.py by build.py. Do not edit. */
#pragma once

/* kinds of ops */
enum {
    /* the warp ends when its loads and stores are done */
    GS_OP_EXIT = 0,
    /* a run of instructions without a wait */
    GS_OP_COMPUTE = 1,
    /* global load; its lines count on a slot */
    GS_OP_LOAD = 2,
    /* global store; its lines count on a slot until L2 acknowledges */
    GS_OP_STORE = 3,
    /* global reduction at L2 (commutative update); counts as STORE does */
    GS_OP_REDUCE = 4,
    /* wait until the slot is empty */
    GS_OP_WAIT = 5,
    /* wait until the load/store unit has taken the warp's copies into shared memory */
    GS_OP_TAKEN = 6,
    /* barrier of all warps of the TB, or of some at a named one */
    GS_OP_BARRIER = 7,
    /* count and go back to target */
    GS_OP_LOOP = 8,
    /* hold the warp for a number of cycles */
    GS_OP_DELAY = 9,
    /* the TB's first warp fences and adds 1 to a semaphore at L2 */
    GS_OP_POST = 10,
    /* all warps of the TB wait until semaphores are complete; its first warp polls them at L2 */
    GS_OP_POLL = 11,
    /* this TB allows the kernels behind it to start */
    GS_OP_TRIGGER = 12,
    /* wait until the kernels that this one was launched behind have ended */
    GS_OP_DEPEND = 13,
    /* take the TB's next tile of a stage, behind a TB barrier but for the first */
    GS_OP_TILE = 14,
    /* count at a barrier of the TB and go on; of copies: once their slot is empty */
    GS_OP_ARRIVE = 15,
    /* wait until enough copies or arrivals have been counted at a barrier of the TB */
    GS_OP_AWAIT = 16,
    /* take the warp's next tile, or go on at target when none is left */
    GS_OP_TURN = 17,
    /* copy a box of a tensor into shared memory of the TB, or of TBs of its cluster */
    GS_OP_BULK_LOAD = 18,
    /* copy a box of shared memory to a tensor */
    GS_OP_BULK_STORE = 19,
    /* wait for the phase of a ring barrier that the warp's cursor names */
    GS_OP_RING_WAIT = 20,
    /* arrive at the ring barrier that the warp's cursor names, of one or more TBs */
    GS_OP_RING_ARRIVE = 21,
    /* move the warp's cursor on */
    GS_OP_ADVANCE = 22,
    /* wait until at most count groups of the warp's asynchronous multiplies are under way */
    GS_OP_MULTIPLY_WAIT = 23,
    /* barrier of all warps of the TB's cluster */
    GS_OP_CLUSTER = 24,
    /* where a scheme may wait, post or trigger; nothing by itself, and never in the core */
    GS_OP_MARK = 25,
    GS_OPS = 26
};

/* wavefronts that a run does not wait for: nothing of what it asks shared memory for is ever waited for */
enum { GS_UNNEEDED = 65535 };

/* pipes of a sub-core */
enum {
    /* FFMA, FADD, FMUL */
    GS_PIPE_FP32 = 0,
    /* IADD3, IMAD, LOP3, LEA, SHF, MOV */
    GS_PIPE_INT = 1,
    /* HFMA2, HADD2 */
    GS_PIPE_FP16 = 2,
    /* DFMA, DADD, DMUL */
    GS_PIPE_FP64 = 3,
    /* MUFU: exp2, rcp, rsqrt, tanh */
    GS_PIPE_SFU = 4,
    /* HMMA steps */
    GS_PIPE_TENSOR = 5,
    /* BRA, BAR and other control flow */
    GS_PIPE_CONTROL = 6,
    GS_PIPES = 7
};

/* gpu.sm.smem_conflicts */
enum {
    GS_GPU_SM_SMEM_CONFLICTS_WORDS = 0,
    GS_GPU_SM_SMEM_CONFLICTS_FIRST_WORD = 1,
};

/* gpu.sm.warp_order */
enum {
    GS_GPU_SM_WARP_ORDER_GREEDY = 0,
    GS_GPU_SM_WARP_ORDER_ROUND_ROBIN = 1,
    GS_GPU_SM_WARP_ORDER_OLDEST = 2,
    GS_GPU_SM_WARP_ORDER_GREEDY_OLDEST = 3,
};

/* gpu.l2.replacement */
enum {
    GS_GPU_L2_REPLACEMENT_RANDOM = 0,
    GS_GPU_L2_REPLACEMENT_LRU = 1,
    GS_GPU_L2_REPLACEMENT_CLOCK = 2,
};

/* gpu.cp.place */
enum {
    GS_GPU_CP_PLACE_LOAD = 0,
    GS_GPU_CP_PLACE_ROOM = 1,
};

/* gpu.cp.gpc_order */
enum {
    GS_GPU_CP_GPC_ORDER_NUMBER = 0,
    GS_GPU_CP_GPC_ORDER_H200 = 1,
};

/* host.submit */
enum {
    GS_HOST_SUBMIT_PREFILLED = 0,
    GS_HOST_SUBMIT_EAGER = 1,
};

/* scheme.priority */
enum {
    GS_SCHEME_PRIORITY_OLDEST = 0,
    GS_SCHEME_PRIORITY_NEWEST = 1,
    GS_SCHEME_PRIORITY_CRITICAL = 2,
    GS_SCHEME_PRIORITY_ROUND_ROBIN = 3,
    GS_SCHEME_PRIORITY_CONSUMER = 4,
};

/* scheme.placement */
enum {
    GS_SCHEME_PLACEMENT_FIRST_FREE = 0,
    GS_SCHEME_PLACEMENT_BALANCED = 1,
    GS_SCHEME_PLACEMENT_AFFINITY = 2,
    GS_SCHEME_PLACEMENT_AHEAD = 3,
};

/* scheme.coherence */
enum {
    GS_SCHEME_COHERENCE_AUTO = 0,
    GS_SCHEME_COHERENCE_KERNEL = 1,
    GS_SCHEME_COHERENCE_BYPASS = 2,
    GS_SCHEME_COHERENCE_TB = 3,
    GS_SCHEME_COHERENCE_ARGUMENT = 4,
};

/* scheme.carveout */
enum {
    GS_SCHEME_CARVEOUT_AUTO = 0,
    GS_SCHEME_CARVEOUT_KERNEL = 1,
    GS_SCHEME_CARVEOUT_JOB = 2,
};

/* scheme.blockmaestro.priority */
enum {
    GS_SCHEME_BLOCKMAESTRO_PRIORITY_PRODUCER = 0,
    GS_SCHEME_BLOCKMAESTRO_PRIORITY_CONSUMER = 1,
};

/* scheme.blockmaestro.addresses */
enum {
    GS_SCHEME_BLOCKMAESTRO_ADDRESSES_AFFINE = 0,
    GS_SCHEME_BLOCKMAESTRO_ADDRESSES_EXACT = 1,
};

/* scheme.bloom.per */
enum {
    GS_SCHEME_BLOOM_PER_KERNEL = 0,
    GS_SCHEME_BLOOM_PER_PART = 1,
    GS_SCHEME_BLOOM_PER_TB = 2,
    GS_SCHEME_BLOOM_PER_GROUP = 3,
};

/* scheme.bloom.clear */
enum {
    GS_SCHEME_BLOOM_CLEAR_KERNEL = 0,
    GS_SCHEME_BLOOM_CLEAR_EPOCH = 1,
};

/* scheme.bloom.signature */
enum {
    GS_SCHEME_BLOOM_SIGNATURE_BLOOM = 0,
    GS_SCHEME_BLOOM_SIGNATURE_EXACT = 1,
};

/* scheme.queues.map */
enum {
    GS_SCHEME_QUEUES_MAP_GRAPH = 0,
    GS_SCHEME_QUEUES_MAP_STREAM = 1,
};

/* scheme.sync.policy */
enum {
    GS_SCHEME_SYNC_POLICY_TILE = 0,
    GS_SCHEME_SYNC_POLICY_ROW = 1,
    GS_SCHEME_SYNC_POLICY_STRIDED = 2,
    GS_SCHEME_SYNC_POLICY_CONV = 3,
};

/* scheme.sync.launch */
enum {
    GS_SCHEME_SYNC_LAUNCH_STREAMS = 0,
    GS_SCHEME_SYNC_LAUNCH_PDL = 1,
    GS_SCHEME_SYNC_LAUNCH_GRAPH = 2,
};

/* scheme.sync.trigger */
enum {
    GS_SCHEME_SYNC_TRIGGER_START = 0,
    GS_SCHEME_SYNC_TRIGGER_LATE = 1,
};

/* scheme.sync.gate */
enum {
    GS_SCHEME_SYNC_GATE_ALL = 0,
    GS_SCHEME_SYNC_GATE_FIRST = 1,
    GS_SCHEME_SYNC_GATE_NONE = 2,
};

/* scheme.sync.wait */
enum {
    GS_SCHEME_SYNC_WAIT_LATE = 0,
    GS_SCHEME_SYNC_WAIT_EARLY = 1,
};

/* scheme.sync.poll */
enum {
    GS_SCHEME_SYNC_POLL_RUN = 0,
    GS_SCHEME_SYNC_POLL_EACH = 1,
};

/* scheme.sync.fence */
enum {
    GS_SCHEME_SYNC_FENCE_GPU = 0,
    GS_SCHEME_SYNC_FENCE_SYSTEM = 1,
};

/* scheme.sync.fused */
enum {
    GS_SCHEME_SYNC_FUSED_GRID = 0,
    GS_SCHEME_SYNC_FUSED_TILE = 1,
};

/* sim.replay */
enum {
    GS_SIM_REPLAY_OFF = 0,
    GS_SIM_REPLAY_PERIOD = 1,
};
