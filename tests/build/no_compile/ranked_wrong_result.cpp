// expect: conversion from
#include <fornax/ranked.h>

using namespace fornax;

Ranked<2> rows(const Ranked<2>& x) {
  Ranked<2> total = x.sum(1);
  return total;
}
