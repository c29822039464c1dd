/* Classifies a picture with the C interface: classify_c digits.tare seven.png */
#include <stdio.h>
#include <tare/c/tare.h>

static int failed(const char* call) {
  fprintf(stderr, "%s: %s\n", call, tare_last_error());
  return 1;
}

/* Predicts with one input, and prints the three most probable classes as JSON. */
static int print_classes(tare_model* model, const DLTensor* picture) {
  DLManagedTensorVersioned* scores = NULL;
  size_t made = 0;
  char* json = NULL;
  if (tare_predict(model, &picture, 1, &scores, 1, &made) != TARE_OK) return failed("tare_predict");
  const int code = tare_describe(model, &scores->dl_tensor, 3, &json);
  tare_release(scores);
  if (code != TARE_OK) return failed("tare_describe");
  puts(json);
  tare_free(json);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s BUNDLE PICTURE\n", argv[0]);
    return 2;
  }
  if (tare_abi_version() != TARE_ABI_VERSION) {
    fprintf(stderr, "libtare.so has another interface than tare.h\n");
    return 1;
  }
  const tare_options options = {.size = sizeof options, .threads = 2};
  tare_model* model = NULL;
  if (tare_open(argv[1], &options, &model) != TARE_OK) return failed("tare_open");
  DLManagedTensorVersioned* picture = NULL;
  int code = 1;
  if (tare_read_picture(model, argv[2], &picture) != TARE_OK)
    failed("tare_read_picture");
  else
    code = print_classes(model, &picture->dl_tensor);
  tare_release(picture);
  tare_close(model);
  return code;
}
