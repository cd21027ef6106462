import { type Html, html } from './html.ts'

/** Our mark: a coin of which a quarter is set apart, because a farthing is a fourth of a penny. */
const shape = 'M7 2a7 7 0 1 0 7 7H7zM9 0v7h7a7 7 0 0 0-7-7z'

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#4a6cf0" d="${shape}"/></svg>`

/** For the head of every page: a browser that finds none there asks for /favicon.ico. */
export const iconLink: Html = html`<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}">`

/** Beside our name. It says nothing that the name does not. */
export const mark: Html = html`<svg class="coin" viewBox="0 0 16 16" aria-hidden="true"><path d="${shape}"/></svg>`
