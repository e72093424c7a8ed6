// Rate of fp32 reductions (RED.ADD.F32) of whole 128 B lines, by SMs and warps: cycles of an SM for each.
// nvcc -O3 -arch=sm_90a reductions.cu -o reductions && ./reductions > h200_reductions.csv
#include <algorithm>
#include <cstdio>
#include <vector>

__global__ void reduce_lines(float *sums, int lines, int rounds, long long *cycles)
{
    float *mine = sums + (size_t)blockIdx.x * lines * 32;
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
    __syncthreads();
    long long begin = clock64();
    for (int round = 0; round < rounds; round++) {
#pragma unroll 32
        for (int line = warp; line < lines; line += warps) {
            atomicAdd(mine + line * 32 + lane, 1.0f);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        cycles[blockIdx.x] = clock64() - begin;
    }
}

int main()
{
    float *sums;
    long long *cycles;
    const int lines = 256, most = 132;
    cudaMalloc(&sums, (size_t)most * lines * 128);
    cudaMemset(sums, 0, (size_t)most * lines * 128);
    cudaMalloc(&cycles, most * sizeof(long long));
    printf("sms,warps,rounds,cycles_per_line\n");
    for (int sms : {1, 16, 66, 132}) {
        for (int warps : {1, 4, 8}) {
            for (int rounds : {1, 64}) {
                std::vector<double> found;
                for (int repeat = 0; repeat < 9; repeat++) {
                    reduce_lines<<<sms, warps * 32>>>(sums, lines, rounds, cycles);
                    std::vector<long long> each(sms);
                    cudaMemcpy(each.data(), cycles, sms * sizeof(long long), cudaMemcpyDeviceToHost);
                    std::sort(each.begin(), each.end());
                    found.push_back((double)each[sms / 2] / rounds / lines);
                }
                std::sort(found.begin(), found.end());
                printf("%d,%d,%d,%.2f\n", sms, warps, rounds, found[4]);
            }
        }
    }
    return cudaGetLastError() != cudaSuccess;
}
