// Structs of the tests of parameter layouts: compiled by nvcc, by the test itself, and read as a header.
#pragma once

struct Inner {
  short page;
  const float* base;
  unsigned char tail[3];
};

struct Params {
  float* out;
  const float* q;
  int n;
  float scale;
  long long strides[3];
  Inner in[2][2];
  unsigned char flag;
  double weight;
  bool on;
  unsigned short ends;
};
