// Precompiled for every test file: the library's common headers and Catch2.
#pragma once
#include "library_pch.hpp"

#include <catch2/catch.hpp>
