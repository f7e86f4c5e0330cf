// Loads tiles of K by TMA, one after the other, and writes them to `out`.
//
//   map     rows of 128 columns of bf16; a box is 64 / pages rows by 64 columns, with a 128-byte swizzle
//   rows    [tiles, pages] first row of each page of a tile in the map
//   out     [tiles * 64, 128] the tiles' elements, row by row
//   tiles   number of tiles; a tile has 64 rows
//   pages   1, 2, 4 or 8 pages of a tile
//
// In `buffer`, columns 0 .. 63 of a tile are bytes 0 .. 8191, columns 64 .. 127 bytes 8192 .. 16383, and a row of each
// half is 128 bytes. One CTA of 128 threads.
#include "tma.h"

extern "C" __global__ void tile(const __grid_constant__ TensorMap map, const int* rows, unsigned short* out, int tiles,
                                int pages) {
  __shared__ __align__(1024) unsigned char buffer[16384];
  __shared__ Barrier full;
}
