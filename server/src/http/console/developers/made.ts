import type { FastifyReply } from 'fastify'
import { html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { textsOf } from '../texts/choose.ts'
import type { Screen } from './screen.ts'

/** A secret that is shown once: in the answer itself, in no URL, and kept by no cache. */
export function sendSecret(
  { ctx, request, reply, base, texts }: Screen,
  shown: { readonly title: string; readonly about: string; readonly copy: string; readonly secret: string },
): Promise<FastifyReply> {
  reply.header('cache-control', 'no-store')
  return sendPage(ctx, request, reply, {
    title: shown.title,
    isAlone: true,
    main: html`<h1>${shown.title}</h1>
<p>${shown.about}</p>
<code class="link" tabindex="0">${shown.secret}</code>
<form><button type="button" data-copy="${shown.secret}" data-done="${textsOf(request).frame.copied}">${shown.copy}</button></form>
<p><a href="${base}">${texts.back}</a></p>`,
  })
}
