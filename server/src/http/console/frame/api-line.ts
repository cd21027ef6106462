import type { FastifyRequest } from 'fastify'
import { type Html, html } from '../../page/html.ts'
import { textsOf } from '../texts/choose.ts'

/** The request that shows or does the same as this screen, ready to be copied into a terminal. */
export function renderApiLine(
  request: FastifyRequest,
  baseUrl: string,
  {
    method = 'GET',
    path,
    body,
  }: { readonly method?: string; readonly path: string; readonly body?: unknown },
  /** Tells several lines of one screen apart. */
  name = '',
): Html {
  const how = method === 'GET' ? '' : ` -X ${method}`
  const data =
    body === undefined ? '' : ` -H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))}`
  return renderCopied(
    request,
    'api',
    `curl${how} ${quote(`${baseUrl}/api/v1${path}`)} -H "X-API-Key: $FARTHING_API_KEY"${data}`,
    name,
  )
}

/** The operator's command that does the same. */
export function renderCommand(request: FastifyRequest, command: string): Html {
  return renderCopied(request, 'command', command)
}

function renderCopied(request: FastifyRequest, title: 'api' | 'command', line: string, name = ''): Html {
  const texts = textsOf(request).frame
  return html`<details class="pane" id="same-${title}${name && `-${name}`}"><summary>${texts[title]}</summary><div class="copy"><pre tabindex="0"><code>${line}</code></pre><button type="button" class="quiet tiny" data-copy="${line}" data-done="${texts.copied}">${texts.copy}</button></div></details>`
}

/** For a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
