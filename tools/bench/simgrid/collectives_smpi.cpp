// The collectives of side_by_side.py for SimGrid's SMPI: an MPI program that it runs in simulation. Buffers are shared
// by all ranks (SMPI_SHARED_MALLOC), so that no data is copied.
//
//   smpirun ... collectives_smpi ring|all_to_all BYTES
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, n = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const int chunk = static_cast<int>(std::stoll(argv[2]) / n);
  void* const out = SMPI_SHARED_MALLOC(static_cast<std::size_t>(chunk));
  void* const in = SMPI_SHARED_MALLOC(static_cast<std::size_t>(chunk));
  const double start = MPI_Wtime();
  if (std::string(argv[1]) == "ring") {
    for (int step = 0; step < 2 * (n - 1); ++step)
      MPI_Sendrecv(out, chunk, MPI_BYTE, (rank + 1) % n, 0, in, chunk, MPI_BYTE, (rank + n - 1) % n, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
  } else {
    std::vector<MPI_Request> open;
    for (int j = 1; j < n; ++j) {
      MPI_Request request;
      MPI_Irecv(in, chunk, MPI_BYTE, (rank + n - j) % n, 0, MPI_COMM_WORLD, &request);
      open.push_back(request);
      MPI_Isend(out, chunk, MPI_BYTE, (rank + j) % n, 0, MPI_COMM_WORLD, &request);
      open.push_back(request);
    }
    MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE);
  }
  const double mine = MPI_Wtime() - start;
  double last = 0;
  MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%.15g\n", last);
  SMPI_SHARED_FREE(out);
  SMPI_SHARED_FREE(in);
  MPI_Finalize();
}
