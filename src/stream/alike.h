// Shapes that differ in axes of extent 1 alone: a group computes them as one.  Pure functions.
#pragma once
#include "graph/type.h"

namespace fornax {

bool same_but_for_ones(const Shape& a, const Shape& b);

// Gives what broadcasts to `shape` axes with which it broadcasts alike to `other`, which is the
// same shape but for ones.
void match_axes(const Shape& shape, const Shape& other, Type& type, Layout& layout);

// Gives what broadcasts to `shape` all its axes.
void broadcast_to(const Shape& shape, Type& type, Layout& layout);

// Whether `shape` is that of `matrix` with the rows split into more axes, and how then another
// matrix of as many rows is seen.
bool splits_rows(const Shape& matrix, const Shape& shape);
Shape split_rows(const Shape& matrix, const Shape& shape);
// Gives the operands of a product of matrices the axes with which their result has `shape`.
void split_left(const Shape& shape, Type& type, Layout& layout);
void split_right(const Shape& shape, Type& type, Layout& layout);

// Whether a value of shape `a` is read like one of shape `b` when it broadcasts to more axes.
bool broadcasts_alike(const Shape& a, const Shape& b);

}  // namespace fornax
