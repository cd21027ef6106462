import highlighter from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import nginx from 'highlight.js/lib/languages/nginx'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'
import { Marked, Parser, type Tokens } from 'marked'
import { type Html, html } from '../page/html.ts'

export type Heading = { readonly id: string; readonly title: string }

type RenderedMarkdown = {
  /** The text of the first heading. */
  readonly title: string
  /** The first sentence, which describes the page. */
  readonly about: string
  /** The headings of the second level. */
  readonly headings: readonly Heading[]
  /** Renders the page. This comes later than the rest, because most pages are never requested. */
  readonly render: () => Html
}

/**
 * Renders this repository's Markdown as HTML. The files are ours, but raw HTML in them is still shown as text: only this
 * function decides what a page can do. `resolve` returns a link's target, or null if the target isn't served.
 */
export function renderMarkdown(source: string, resolve: (href: string) => string | null): RenderedMarkdown {
  const headings = new Map<Tokens.Generic, Heading & { readonly depth: number }>()
  const marked = new Marked({
    renderer: {
      heading(token) {
        const { depth, tokens } = token
        const id = headings.get(token)?.id
        const text = this.parser.parseInline(tokens)
        if (depth === 1 || id === undefined) return `<h${depth}>${text}</h${depth}>\n`
        const anchor = `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
        return `<h${depth} id="${id}">${text} ${anchor}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const target = resolve(href)
        return target === null ? text : `<a href="${escapeHtml(target)}">${text}</a>`
      },
      image({ href, text }) {
        const target = resolve(href)
        if (target === null) return escapeHtml(text)
        const image = `<img src="${escapeHtml(target)}" alt="${escapeHtml(text)}" loading="lazy">`
        return `<a class="picture" href="${escapeHtml(target)}">${image}</a>`
      },
      code({ text, lang = '' }) {
        return renderCode(text, lang.split(' ')[0], fileNameOf(lang)).html
      },
      // A docs path in backticks becomes a link on the site, and stays readable in the file.
      codespan({ text }) {
        const code = `<code>${escapeHtml(text)}</code>`
        return /^\/docs(\/\w+)*$/.test(text) ? `<a href="${text}">${code}</a>` : code
      },
      // A plain box: readers tick it on paper.
      checkbox() {
        return '☐ '
      },
      html({ text }) {
        return escapeHtml(text)
      },
    },
  })
  const tokens = marked.lexer(source)
  const parser = new Parser(marked.defaults)
  for (const token of tokens) {
    if (token.type !== 'heading') continue
    const title = decodeEntities(parser.parseInline(token.tokens ?? [], parser.textRenderer))
    headings.set(token, {
      id: slug(title, [...headings.values()]),
      title,
      depth: (token as Tokens.Heading).depth,
    })
  }
  const paragraph = tokens.find((token): token is Tokens.Paragraph => token.type === 'paragraph')
  const found = [...headings.values()]
  return {
    title: found.find(({ depth }) => depth === 1)?.title ?? '',
    about: firstSentence(paragraph?.text ?? ''),
    headings: found.filter(({ depth }) => depth === 2),
    render: () => ({
      html: marked
        .parser(tokens)
        .replaceAll('<table>', '<div class="wide" tabindex="0"><table>')
        .replaceAll('</table>', '</table></div>'),
    }),
  }
}

/** After its language, a fence may name the file that its text belongs in: ```ini farthing.service */
export function fileNameOf(info: string): string | null {
  return info.split(' ').find((word) => /^[\w.-]*[\w-]\.\w+$|^[A-Z]\w*file$/.test(word)) ?? null
}

/** The same ids as on GitHub, so that links work in both places. */
function slug(title: string, earlier: readonly Heading[]): string {
  const id = title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
  let free = id
  for (let n = 1; earlier.some((heading) => heading.id === free); n++) free = `${id}-${n}`
  return free
}

function firstSentence(markdown: string): string {
  const text = markdown.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '')
  return (/^[\s\S]*?\.(?=\s|$)/.exec(text)?.[0] ?? text).replace(/\s+/g, ' ')
}

export function decodeEntities(text: string): string {
  const characters: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' }
  return text.replace(/&(?:(amp|lt|gt|quot)|#(\d+)|#x([0-9a-f]+));/gi, (_, name, decimal, hex) =>
    name
      ? (characters[name] ?? '')
      : String.fromCodePoint(Number.parseInt(decimal ?? hex, decimal ? 10 : 16)),
  )
}

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

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
