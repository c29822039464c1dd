// tare-predict: links what predicting needs and nothing else.
#include "tare/cli/predict.h"

int main(int argc, char** argv) { return tare::cli::predict_program(argc, argv); }
