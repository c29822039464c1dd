// Writes the sections and the frame of an HTML page.
#include "tare/report/page.h"

#include "tare/report/chart.h"
#include "tare/report/markup.h"

namespace tare::report {
namespace {

constexpr size_t kFoldedBytes = 64 << 10;

constexpr const char* kStyle =
    ":root{color-scheme:light dark;--page:#f4f5f7;--card:#fff;--ink:#16191d;--soft:#5b6570;"
    "--rule:#dfe3e8;--accent:#0072b2;--shade:rgb(22 25 29/.22)}"
    "@media(prefers-color-scheme:dark){:root{--page:#101316;--card:#191d21;--ink:#e9ecef;"
    "--soft:#a3adb8;--rule:#333a41;--accent:#5eb0ee;--shade:rgb(0 0 0/.7)}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "main{max-width:1040px;margin:0 auto;padding:28px 20px 48px}"
    "header{margin-bottom:20px}h1{font-size:26px;line-height:1.2;margin:0;"
    "overflow-wrap:anywhere}header p{margin:6px 0 0;color:var(--soft);overflow-wrap:anywhere}"
    "section{background:var(--card);border:1px solid var(--rule);border-radius:10px;"
    "padding:18px 20px;margin:16px 0}"
    "h2{font-size:17px;margin:0 0 12px}"
    "figure{margin:22px 0 0}figure:first-child,h2+figure{margin-top:0}"
    "figcaption{font-size:14px;font-weight:600;margin-bottom:6px}"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr));"
    "gap:26px 32px}.pair figure{margin:0;min-width:0}.pair div figure+figure{margin-top:18px}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:10px;"
    "margin:0}"
    ".tiles div{background:var(--card);border:1px solid var(--rule);border-radius:10px;"
    "padding:10px 14px;min-width:0;display:flex;flex-direction:column}"
    ".tiles dt{font-size:13px;color:var(--soft)}"
    ".tiles dd{margin:auto 0 0;font-size:17px;font-weight:600;overflow-wrap:anywhere}"
    // A shade at an edge shows that there is more; it is covered where the table ends.
    ".wide{overflow-x:auto;margin:0 -4px;padding:0 4px;background:"
    "linear-gradient(90deg,var(--card) 40%,transparent) 0 0/40px 100% no-repeat local,"
    "linear-gradient(270deg,var(--card) 40%,transparent) 100% 0/40px 100% no-repeat local,"
    "linear-gradient(90deg,var(--shade),transparent) 0 0/12px 100% no-repeat scroll,"
    "linear-gradient(270deg,var(--shade),transparent) 100% 0/12px 100% no-repeat scroll}"
    ".wide:focus-visible{outline:2px solid var(--accent)}"
    "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}"
    "th,td{padding:6px 10px;border-bottom:1px solid var(--rule);text-align:right;"
    "white-space:nowrap}"
    "th:first-child{text-align:left;padding-left:0;position:sticky;left:0;"
    "background:var(--card)}"
    "thead th{color:var(--soft);font-weight:600;font-size:13px}tbody th{font-weight:600}"
    "tbody tr:last-child>*{border-bottom:0}"
    ".plain td,.plain th{text-align:left;white-space:normal;overflow-wrap:anywhere}"
    ".matrix table{width:auto}.matrix th,.matrix td{text-align:center;min-width:3em;padding:6px}"
    ".matrix tbody th{text-align:left}"
    ".worst{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:14px;"
    "list-style:none;margin:0;padding:0;font-size:13px}"
    ".worst.texts{grid-template-columns:1fr}"
    ".worst li{display:grid;justify-items:start;min-width:0;overflow-wrap:anywhere}"
    ".worst img{width:96px;height:96px;object-fit:contain;image-rendering:pixelated;"
    "background:var(--rule);border-radius:6px;margin-bottom:4px}.soft{color:var(--soft)}"
    ".note{margin:12px 0;color:var(--soft);font-size:14px}.note:last-child{margin-bottom:0}"
    ".missing{border-left:4px solid #e69f00}"
    "details summary{cursor:pointer;font-weight:600}"
    "pre{overflow-x:auto;font-size:13px;line-height:1.45;margin:12px 0 0}"
    "footer{color:var(--soft);font-size:13px;margin-top:24px}"
    "@media(max-width:520px){main{padding:18px 12px 32px}section{padding:14px}"
    "th,td{padding:6px 7px}.matrix th,.matrix td{min-width:0;padding:6px 4px;font-size:13px}"
    ".worst{grid-template-columns:1fr 1fr}"
    "h1{font-size:22px}.tiles{grid-template-columns:1fr 1fr}.tiles dd{font-size:17px}}";

}  // namespace

std::string tiles(const std::vector<Tile>& all) {
  std::string text = "<dl class=\"tiles\">";
  for (const auto& tile : all)
    text += "<div><dt>" + escaped(tile.name) + "</dt><dd>" + escaped(tile.value) + "</dd></div>";
  return text + "</dl>";
}

std::string section(std::string_view heading, std::string_view content) {
  if (content.empty()) return {};
  return "<section><h2>" + escaped(heading) + "</h2>" + std::string(content) + "</section>\n";
}

std::string chart_with(std::string_view caption, const std::string& chart,
                       const std::string& legend) {
  if (chart.empty()) return {};
  return "<figure><figcaption>" + escaped(caption) + "</figcaption>" + chart + legend +
         "</figure>\n";
}

std::string note(std::string_view text) {
  return "<p class=\"note\">" + escaped(text, 1000) + "</p>";
}

std::string folded(std::string_view heading, std::string_view text) {
  return "<details><summary>" + escaped(heading) + "</summary><pre>" +
         escaped_lines(text, kFoldedBytes) + "</pre></details>";
}

std::string page(std::string_view title, std::string_view subtitle, std::string_view content,
                 std::string_view style) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; img-src data:\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n<style>" + kStyle + chart_style() + std::string(style) +
         "</style></head>\n<body><main><header><h1>" + escaped(title) + "</h1><p>" +
         escaped(subtitle, 400) + "</p></header>\n" + std::string(content) +
         "<footer>Made by tare report. Bytes are tracked bytes: live tensors of the run's device."
         "</footer></main></body></html>\n";
}

}  // namespace tare::report
