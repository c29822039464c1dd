// The program tare-train: every command but predict. `tare` executes it.
#include "tare/cli/program.h"
#include "tare/config/field.h"
#include "tare/runtime/leave.h"

int main(int argc, char** argv) {
  tare::config::hint_at_own_programs();
  tare::leave(tare::run_program(argc, argv));
}
