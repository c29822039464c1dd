// Writes a picture as an SVG file.
#include "tare/report/markup.h"
#include "tare/report/picture.h"

namespace tare::report {
namespace {

constexpr const char* kFonts = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";

constexpr size_t kTextBytes = 1000;

std::string xml(const std::string& text) {
  return escaped(drawable_text(text, kTextBytes), kTextBytes);
}

const char* anchor_name(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      break;
  }
  return "end";
}

std::string place(const Point& point) { return coordinate(point.x) + ' ' + coordinate(point.y); }

std::string label_element(const Label& label) {
  const std::string turn =
      label.upwards ? " transform=\"rotate(-90 " + place(label.at) + ")\"" : std::string();
  return "<text x=\"" + coordinate(label.at.x) + "\" y=\"" + coordinate(label.at.y) +
         "\" font-size=\"" + coordinate(label.size) + "\" fill=\"" + label.colour +
         "\" text-anchor=\"" + anchor_name(label.anchor) + '"' +
         (label.bold ? " font-weight=\"700\"" : "") + turn + '>' + escaped(label.text, kTextBytes) +
         "</text>\n";
}

std::string stroke_element(const Stroke& stroke) {
  std::string path;
  bool pen_down = false;
  for (const auto& point : stroke.points) {
    const bool drawn = finite(point);
    if (drawn) path += pen_down ? 'L' + place(point) : 'M' + place(point) + "h0";
    pen_down = drawn;
  }
  return std::string("<path stroke=\"") + stroke.colour + "\" stroke-width=\"" +
         coordinate(stroke.width) + '"' + (stroke.dashed ? " stroke-dasharray=\"5 5\"" : "") +
         " d=\"" + path + "\"/>\n";
}

}  // namespace

std::string svg_file(const Picture& picture) {
  const std::string width = coordinate(picture.width), height = coordinate(picture.height);
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"" + width +
                     "\" height=\"" + height + "\" viewBox=\"0 0 " + width + ' ' + height +
                     "\">\n<title>" + xml(picture.title) + "</title>\n<desc>" +
                     xml(picture.description) +
                     "</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
                     "<g fill=\"none\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n";
  for (const auto& stroke : picture.strokes) text += stroke_element(stroke);
  text += std::string("</g>\n<g font-family=\"") + kFonts + "\">\n";
  for (const auto& label : picture.labels) text += label_element(label);
  return text + "</g>\n</svg>\n";
}

}  // namespace tare::report
