import { type Html, html } from '../page/html.ts'

/** The form token of a page that is being made, as a hidden field. */
export function formField(formToken: string): Html {
  return html`<input type="hidden" name="formToken" value="${formToken}">`
}
