// Everything a user includes.
#pragma once
#include "tigon/arguments.hpp"
#include "tigon/axis.hpp"
#include "tigon/dtype.hpp"
#include "tigon/error.hpp"
#include "tigon/function.hpp"
#include "tigon/index.hpp"
#include "tigon/math.hpp"
#include "tigon/operators.hpp"
#include "tigon/reduce.hpp"
#include "tigon/shape.hpp"
#include "tigon/tensor.hpp"
