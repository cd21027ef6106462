import highlighter from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import nginx from 'highlight.js/lib/languages/nginx'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'
import { type Html, html } from '../page/html.ts'

/** The languages of the docs, by the word after the fence. Anything else is shown as plain text. */
const languages = { sh: bash, ini, json, nginx, ts: typescript, yaml } as const
for (const [name, language] of Object.entries(languages)) highlighter.registerLanguage(name, language)

/** A block of code, with the name of the file that it belongs in if there is one. Only classes: the style has colours. */
export function renderCode(text: string, language = '', fileName: string | null = null): Html {
  // Escaped here, because html`` would remove the line breaks.
  const code: Html = {
    html: Object.hasOwn(languages, language)
      ? highlighter.highlight(text, { language, ignoreIllegals: true }).value
      : escapeHtml(text),
  }
  // Focusable, so that it can be scrolled without a mouse.
  const caption = fileName !== null && html`<figcaption>${fileName}</figcaption>`
  return html`<figure class="code">${caption}<pre tabindex="0"><code>${code}</code></pre></figure>
`
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
