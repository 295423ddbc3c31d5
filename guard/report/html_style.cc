#include "guard/report/html_parts.h"
#include "guard/report/influence_map_svg.h"

namespace attnguard {

// Widths are relative and tables scroll by themselves, so that a phone shows
// the page without scrolling sideways.
std::string html_style() {
  return std::string(map_style()) +
         R"css(:root{color-scheme:light dark;--ground:#fff;--raised:#f6f8fa;--text:#1c242c;--soft:#55606b;--edge:#d5dbe1;--link:#1f5fae;--good:#177245;--bad:#c02a17;--unsure:#8a5a00;--error:#8a2be2;--neutral:#55606b}
@media (prefers-color-scheme:dark){:root{--ground:#12171c;--raised:#1a2129;--text:#e6ebf0;--soft:#a3aeb9;--edge:#303a44;--link:#7fb2f0;--good:#4cc38a;--bad:#ff7a68;--unsure:#f0b429;--error:#c79bff;--neutral:#a3aeb9}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;overflow-wrap:anywhere}
header,main,footer{max-width:68rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.75rem;line-height:1.2;margin:.25rem 0 .5rem}
h2{font-size:1.35rem;margin:2.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--edge)}
h3{font-size:1.05rem;margin:1.75rem 0 .5rem}
h4{font-size:1.05rem;margin:0}
h5{font-size:.95rem;margin:1.25rem 0 .35rem}
p{margin:.35rem 0}
a{color:var(--link)}
.soft{color:var(--soft)}
.tool{color:var(--soft);margin-top:1.25rem}
header{border-left:.4rem solid var(--neutral);padding-left:1rem;margin-top:1rem}
header .tool{margin-top:0}
.violation{--tone:var(--bad)}.pass{--tone:var(--good)}.inconclusive,.warning{--tone:var(--unsure)}.engine-error{--tone:var(--error)}.neutral{--tone:var(--neutral)}
header.violation,header.pass,header.inconclusive,header.engine-error{border-color:var(--tone)}
h1 .badge{font-size:inherit;border:0;padding:0}
.badge{display:inline-block;color:var(--tone);border:1px solid var(--tone);border-radius:1rem;padding:0 .6rem;font-size:.85rem;font-weight:600;white-space:nowrap}
code,pre{font:.85rem/1.5 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
pre{background:var(--raised);border:1px solid var(--edge);border-radius:.4rem;padding:.6rem .8rem;margin:.35rem 0;white-space:pre-wrap;overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem;min-width:100%;overflow-wrap:normal}
caption{text-align:left;color:var(--soft);padding:.25rem 0}
th,td{text-align:left;padding:.3rem .75rem .3rem 0;border-bottom:1px solid var(--edge);vertical-align:top}
th{font-weight:600}
thead th{color:var(--soft);font-weight:600;white-space:nowrap}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.words{min-width:14rem}
.zero{color:var(--soft)}
.tone{color:var(--tone);font-weight:600}
.bar{display:block;width:8rem;height:.7rem;margin-top:.4rem;background:var(--raised);border-radius:.2rem;overflow:hidden}
.bar i{display:block;height:100%;background:var(--tone)}
dl.facts{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;margin:.5rem 0;color:var(--soft);font-size:.9rem}
dl.facts div{display:flex;gap:.4rem}
dl.facts dd{margin:0;color:var(--text)}
.group{border:1px solid var(--edge);border-left:.3rem solid var(--tone);border-radius:.4rem;padding:.9rem 1rem;margin:1rem 0}
.group .badge{margin-right:.5rem}
.cause{list-style:none;background:var(--raised);border-radius:.4rem;padding:.6rem .8rem;margin:.75rem 0}
.cause .below{padding-left:1rem;color:var(--soft);font-size:.9rem}
.about{display:block;color:var(--soft);font-weight:400}
figure{margin:.75rem 0}
figcaption{color:var(--soft);font-size:.9rem;margin:.35rem 0}
svg{max-width:100%;height:auto}
.panels{display:flex;flex-wrap:wrap;gap:1rem 1.5rem;align-items:flex-start}
.panels figure{margin:0;max-width:100%}
.panels .main svg{min-width:min(17rem,75vw)}
.panels .small svg{width:11rem}
.legend{display:flex;flex-wrap:wrap;gap:.15rem 1.25rem;list-style:none;margin:.5rem 0;padding:0;font-size:.9rem}
.legend svg{width:1rem;height:1rem;vertical-align:-.15rem;margin-right:.4rem}
.zoom{display:none;background:var(--raised);border:1px solid var(--edge);border-radius:.4rem;padding:.75rem;margin:.5rem 0;gap:1rem;flex-wrap:wrap;scroll-margin-top:12rem}
.zoom:target{display:flex}
.zoom svg{width:9rem;height:9rem;flex:none}
.zoom .frame{fill:none;stroke:var(--words);stroke-width:.14}
.plot{--words:#47525e;--expected:#177245;--observed:#d3331e;--axis:#aab3bc}
@media (prefers-color-scheme:dark){.plot{--words:#aab4bf;--expected:#4cc38a;--observed:#ff5a43;--axis:#4a5560}}
.plot text{font:11px system-ui,sans-serif;fill:var(--words)}
.plot .axis{stroke:var(--axis);fill:none}
.plot .expected{stroke:var(--expected);stroke-width:2;fill:none}
.plot .observed{fill:var(--observed)}
.plot .stem{stroke:var(--observed);stroke-width:1.5;fill:none}
.matrix{--may:#4878b0;--not:#e6eaef;--found:#d3331e;--frame:#1c242c}
@media (prefers-color-scheme:dark){.matrix{--may:#4f86c6;--not:#262e37;--found:#ff5a43;--frame:#e6ebf0}}
.matrix .may{fill:var(--may)}.matrix .not{fill:var(--not)}.matrix .found{fill:var(--found)}
details{margin:.5rem 0}
summary{cursor:pointer;font-weight:600;padding:.2rem 0}
summary:focus-visible,a:focus-visible,.scroll:focus-visible{outline:2px solid var(--link);outline-offset:2px}
details>:not(summary){margin-left:.25rem}
ul.lines{margin:.35rem 0;padding-left:1.1rem;font-size:.9rem}
footer{color:var(--soft);font-size:.9rem;border-top:1px solid var(--edge);margin-top:3rem;padding-top:1rem;padding-bottom:2rem}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;background:var(--ground);padding:.5rem}
@media (max-width:40rem){.about{display:none}.bar{width:5rem}.group{padding:.7rem}th,td{padding-right:.5rem}td.words,td.problems{min-width:11rem}}
@media print{.zoom{display:none}.group{break-inside:avoid}}
)css";
}

}  // namespace attnguard
