"""The style sheet of the HTML report.

Everything is scoped to the class ``eddyline``, so a notebook around it stays as
it is. Colours are chosen by ``light-dark()``: the system's preference decides,
unless the notebook says which theme it shows. The report paints its own paper,
so it stays legible where neither is known.
"""

from __future__ import annotations

STYLE = """
.eddyline{color-scheme:light dark;
--ink:light-dark(#1b1f24,#e6e9ed);--muted:light-dark(#59636e,#9aa4af);
--grid:light-dark(#dde1e6,#343a42);--paper:light-dark(#ffffff,#15181c);
--tile:light-dark(#f4f6f8,#1f242a);--rest:light-dark(#b4b9c0,#5b636d);
--c0:light-dark(#0072b2,#3d9bd6);--c1:light-dark(#d55e00,#e8772a);
--c2:light-dark(#009e73,#1fb58b);--c3:light-dark(#cc79a7,#d68bb5);
--c4:light-dark(#e69f00,#edb03a);--c5:light-dark(#56b4e9,#8accf2);
background:var(--paper);color:var(--ink);max-width:1000px;margin:0 auto;padding:20px 24px;
font:15px/1.45 system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,sans-serif}
[data-jp-theme-light="true"] .eddyline,.vscode-light .eddyline,html[theme="light"] .eddyline{
color-scheme:light}
[data-jp-theme-light="false"] .eddyline,.vscode-dark .eddyline,html[theme="dark"] .eddyline{
color-scheme:dark}
.eddyline h1{font-size:22px;margin:0 0 8px}
.eddyline h2{font-size:18px;margin:28px 0 2px;overflow-wrap:anywhere}
.eddyline h3{font-size:15px;margin:22px 0 4px}
.eddyline p{margin:4px 0}
.eddyline .sub{color:var(--muted)}
.eddyline .note{background:var(--tile);border-left:4px solid var(--c4);padding:8px 12px;
margin:12px 0}
.eddyline .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:8px;
margin:14px 0}
.eddyline .tiles div{background:var(--tile);border-radius:6px;padding:8px 12px}
.eddyline .tiles dt{color:var(--muted);font-size:13px;font-weight:400}
.eddyline .tiles dd{margin:0}
.eddyline .tiles b{display:block;font-size:20px;font-weight:600}
.eddyline .tiles span{color:var(--muted);font-size:13px}
.eddyline .wide,.eddyline figure{overflow-x:auto;margin:0}
.eddyline figure{margin:20px 0 4px}
.eddyline figure svg{display:block;width:100%;min-width:640px;height:auto}
.eddyline figcaption,.eddyline .wide+.sub{color:var(--muted);font-size:13px;margin:2px 0}
.eddyline table{border-collapse:collapse;background:none;color:inherit;margin:0;font-size:14px}
.eddyline th,.eddyline td{padding:4px 10px;text-align:right;white-space:nowrap;
border:0 solid var(--grid);border-bottom-width:1px;background:none;
font-variant-numeric:tabular-nums;vertical-align:top}
.eddyline th{color:var(--muted);font-weight:500}
.eddyline td.w,.eddyline th.w{text-align:left;white-space:normal;
overflow-wrap:break-word;min-width:10em}
.eddyline th:first-child,.eddyline td:first-child{text-align:left;padding-left:0}
.eddyline details{margin:4px 0}
.eddyline summary{cursor:pointer;color:var(--muted);font-size:14px}
.eddyline .f-ink{fill:var(--ink)}.eddyline .f-muted{fill:var(--muted)}
.eddyline .f-paper{fill:var(--paper)}.eddyline .f-rest{fill:var(--rest)}
.eddyline .f-c0{fill:var(--c0)}.eddyline .f-c1{fill:var(--c1)}.eddyline .f-c2{fill:var(--c2)}
.eddyline .f-c3{fill:var(--c3)}.eddyline .f-c4{fill:var(--c4)}.eddyline .f-c5{fill:var(--c5)}
.eddyline .s-ink{stroke:var(--ink)}.eddyline .s-grid{stroke:var(--grid)}
.eddyline .edge{stroke:var(--paper)}
@media print{.eddyline{color-scheme:light}}
"""
