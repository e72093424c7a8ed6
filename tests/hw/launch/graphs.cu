// What it takes the host to make a CUDA graph of small kernels, and to launch it: medians of 15, in us.
//   nvcc -O3 -std=c++17 -arch=sm_90a -o graphs graphs.cu && ./graphs > h200_graphs.csv
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

using Clock = std::chrono::steady_clock;

__global__ void small(float *p)
{
    if (p != nullptr) {
        *p = 1;
    }
}

static double us(Clock::time_point from, Clock::time_point to)
{
    return std::chrono::duration<double, std::micro>(to - from).count();
}

static void check(cudaError_t error)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

int main()
{
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    std::puts("nodes,edges,add_us,instantiate_us,upload_us,launch_us,run_us,stream_us");
    for (int nodes : {16, 64, 256, 1024}) {
        for (int wide : {1, 3}) { // each kernel needs this many before it
            std::vector<double> times[6];
            int edges = 0;
            for (int turn = 0; turn < 16; turn++) {
                float *none = nullptr;
                void *args[] = {&none};
                std::vector<cudaGraphNode_t> made(nodes);
                cudaGraph_t graph;
                cudaGraphExec_t ready;
                edges = 0;
                auto t0 = Clock::now();
                check(cudaGraphCreate(&graph, 0));
                for (int i = 0; i < nodes; i++) {
                    cudaKernelNodeParams what = {};
                    what.func = reinterpret_cast<void *>(small);
                    what.gridDim = dim3(8);
                    what.blockDim = dim3(128);
                    what.kernelParams = args;
                    int before = std::min(i, wide);
                    edges += before;
                    std::vector<cudaGraphNode_t> needs(made.begin() + i - before, made.begin() + i);
                    check(cudaGraphAddKernelNode(&made[i], graph, needs.data(), before, &what));
                }
                auto t1 = Clock::now();
                check(cudaGraphInstantiate(&ready, graph, 0));
                auto t2 = Clock::now();
                check(cudaGraphUpload(ready, stream));
                check(cudaStreamSynchronize(stream));
                auto t3 = Clock::now();
                check(cudaGraphLaunch(ready, stream));
                auto t4 = Clock::now();
                check(cudaStreamSynchronize(stream));
                auto t5 = Clock::now();
                check(cudaGraphLaunch(ready, stream));
                check(cudaStreamSynchronize(stream));
                auto t6 = Clock::now();
                for (int i = 0; i < nodes; i++) {
                    small<<<8, 128, 0, stream>>>(nullptr);
                }
                check(cudaStreamSynchronize(stream));
                auto t7 = Clock::now();
                check(cudaGraphExecDestroy(ready));
                check(cudaGraphDestroy(graph));
                if (turn > 0) { // the first one loads the kernel
                    double each[] = {us(t0, t1), us(t1, t2), us(t2, t3), us(t3, t4), us(t5, t6), us(t6, t7)};
                    for (int k = 0; k < 6; k++) {
                        times[k].push_back(each[k]);
                    }
                }
            }
            std::printf("%d,%d", nodes, edges);
            for (auto &column : times) {
                std::sort(column.begin(), column.end());
                std::printf(",%.1f", column[column.size() / 2]);
            }
            std::puts("");
        }
    }
    return 0;
}
