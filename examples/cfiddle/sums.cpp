#include <cstdint>
#include <vector>
#include "cfiddle.hpp"

// Adds up a matrix of size * size numbers, along its rows or along its columns: the same sum, another order of memory.

extern "C" uint64_t along_rows(uint64_t size) {
    std::vector<uint64_t> matrix(size * size, 1);
    uint64_t sum = 0;
    start_measurement();
    for (uint64_t row = 0; row < size; row++)
        for (uint64_t column = 0; column < size; column++)
            sum += matrix[row * size + column];
    end_measurement();
    return sum;
}

extern "C" uint64_t along_columns(uint64_t size) {
    std::vector<uint64_t> matrix(size * size, 1);
    uint64_t sum = 0;
    start_measurement();
    for (uint64_t column = 0; column < size; column++)
        for (uint64_t row = 0; row < size; row++)
            sum += matrix[row * size + column];
    end_measurement();
    return sum;
}
