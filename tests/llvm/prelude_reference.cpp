// Reference values of the prelude's functions.
#include "prelude_reference.hpp"

#include <cmath>
#include <limits>

namespace tigon::testing {
namespace {

template <class T>
T sigmoid(T x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
template <class T>
T softplus(T x) {
  return std::isnan(x) ? x : std::fmax(x, T(0)) + std::log1p(std::exp(-std::fabs(x)));
}
template <class T>
T log_sigmoid(T x) {
  return -softplus(-x);
}

// |got - exact| / 2^(exponent of exact - mantissa bits + 1), both limited to 2^(highest exponent).
template <class Exact>
double distance(Exact got, Exact exact, int mantissa, int lowest, int highest) {
  if (std::isnan(got) || std::isnan(exact)) {
    return std::isnan(got) && std::isnan(exact) ? 0 : std::numeric_limits<double>::infinity();
  }
  const Exact limit = std::ldexp(Exact(1), highest);
  const Exact near = std::fmin(std::fmax(got, -limit), limit);
  const Exact bounded = std::fmin(std::fmax(exact, -limit), limit);
  if (near == bounded) return 0;
  const int exponent = bounded == 0 ? lowest : std::max(std::ilogb(bounded), lowest);
  return static_cast<double>(std::ldexp(std::fabs(near - bounded), mantissa - 1 - std::min(exponent, highest - 1)));
}

}  // namespace

const PreludeReference prelude_references[14] = {
    {"exp", [](double x) { return std::exp(x); }, [](Extended x) { return std::exp(x); }, true},
    {"exp2", [](double x) { return std::exp2(x); }, [](Extended x) { return std::exp2(x); }, true},
    {"expm1", [](double x) { return std::expm1(x); }, [](Extended x) { return std::expm1(x); }, false},
    {"log", [](double x) { return std::log(x); }, [](Extended x) { return std::log(x); }, false},
    {"log2", [](double x) { return std::log2(x); }, [](Extended x) { return std::log2(x); }, false},
    {"log1p", [](double x) { return std::log1p(x); }, [](Extended x) { return std::log1p(x); }, false},
    {"tanh", [](double x) { return std::tanh(x); }, [](Extended x) { return std::tanh(x); }, false},
    {"erf", [](double x) { return std::erf(x); }, [](Extended x) { return std::erf(x); }, false},
    {"sin", [](double x) { return std::sin(x); }, [](Extended x) { return std::sin(x); }, false},
    {"cos", [](double x) { return std::cos(x); }, [](Extended x) { return std::cos(x); }, false},
    {"sigmoid", sigmoid<double>, sigmoid<Extended>, true},
    {"softplus", softplus<double>, softplus<Extended>, true},
    {"log_sigmoid", log_sigmoid<double>, log_sigmoid<Extended>, true},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, [](Extended x) { return 1 / std::sqrt(x); }, false},
};

double ulp_distance_f32(float got, double exact) { return distance<double>(got, exact, 24, -126, 128); }
double ulp_distance_f64(double got, Extended exact) { return distance<Extended>(got, exact, 53, -1022, 1024); }

}  // namespace tigon::testing
