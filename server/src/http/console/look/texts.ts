import type { Texts } from '../languages/pick.ts'
import type { PreviewState } from './preview.ts'

/** What may be wrong, by field. */
export const faults = [
  'name',
  'accentColor',
  'supportEmail',
  'supportUrl',
  'timeZone',
  'reportCurrency',
  'large',
  'image',
] as const
export type Fault = (typeof faults)[number]

type LookTexts = {
  readonly title: string
  readonly about: string
  readonly saved: string
  readonly mayNot: string
  readonly name: string
  readonly logo: string
  readonly logoAbout: string
  readonly linked: string
  readonly removeLogo: string
  readonly ownColor: string
  readonly color: string
  readonly contrast: Readonly<Record<'white' | 'black', string>>
  readonly paleOnLight: string
  readonly paleOnDark: string
  readonly standsOut: string
  readonly support: string
  readonly supportAbout: string
  readonly supportEmail: string
  readonly supportUrl: string
  readonly books: string
  readonly timeZone: string
  readonly reportCurrency: string
  readonly save: string
  readonly preview: string
  readonly previewAbout: string
  readonly frame: string
  readonly states: Readonly<Record<PreviewState, string>>
  readonly faults: Readonly<Record<Fault, string>>
}

/** How buyers see the store. */
export const lookTexts: Texts<LookTexts> = {
  en: {
    title: 'Look',
    about: 'How buyers see your store on the payment page.',
    saved: 'Saved. New and open payment pages show it.',
    mayNot: 'Owners change this.',
    name: 'Name of the store',
    logo: 'Logo',
    logoAbout: 'A square PNG, JPEG or WebP of at most 9 KB. 128 by 128 pixels are enough.',
    linked: 'The store has a link as its logo, which pages do not show: they load nothing from elsewhere.',
    removeLogo: 'Remove the logo',
    ownColor: 'Use a colour of your own',
    color: 'Colour of the main button',
    contrast: {
      white: 'White letters are used on it: contrast {ratio} to 1, easy to read.',
      black: 'Black letters are used on it: contrast {ratio} to 1, easy to read.',
    },
    paleOnLight:
      'On a light page the button itself is hard to see ({ratio} to 1). A darker colour stands out more.',
    paleOnDark:
      'On a dark page the button itself is hard to see ({ratio} to 1). A lighter colour stands out more.',
    standsOut: 'It stands out on light and dark pages.',
    support: 'Where buyers get help',
    supportAbout: 'Shown below every payment. Leave empty what you do not have.',
    supportEmail: 'Email address',
    supportUrl: 'Web address',
    books: 'Days and money',
    timeZone: 'Time zone, in which your days begin',
    reportCurrency: 'Currency of your figures',
    save: 'Save',
    preview: 'Preview',
    previewAbout: 'The real payment page with what is saved. Nothing in it can be clicked.',
    frame: 'Payment page: {state}',
    states: {
      open: 'Wallet',
      phone: 'Phone',
      send: 'Transfer',
      processing: 'Settling',
      paid: 'Paid',
      short: 'Too little',
      expired: 'Expired',
      canceled: 'Canceled',
    },
    faults: {
      name: 'The name needs 1 to 100 characters that can be shown.',
      accentColor: 'The colour must be six hexadecimal digits, such as #2b50d8.',
      supportEmail: 'Write an email address, such as help@shop.example, or nothing.',
      supportUrl: 'Write a web address that begins with https://, or nothing.',
      timeZone: 'Choose a time zone from the list.',
      reportCurrency: 'Choose a currency from the list.',
      large: 'The logo is larger than 9 KB. Make it smaller, for example 128 by 128 pixels, and try again.',
      image: 'The logo is no PNG, JPEG or WebP image. Choose another file.',
    },
  },
  es: {
    title: 'Aspecto',
    about: 'Cómo ven su tienda los compradores en la página de pago.',
    saved: 'Guardado. Lo muestran las páginas de pago nuevas y las abiertas.',
    mayNot: 'Lo cambian los propietarios.',
    name: 'Nombre de la tienda',
    logo: 'Logotipo',
    logoAbout: 'Un PNG, JPEG o WebP cuadrado de 9 KB como máximo. Bastan 128 por 128 píxeles.',
    linked:
      'El logotipo de la tienda es un enlace, y las páginas no lo muestran: no cargan nada de otro sitio.',
    removeLogo: 'Quitar el logotipo',
    ownColor: 'Usar un color propio',
    color: 'Color del botón principal',
    contrast: {
      white: 'Lleva letras blancas: contraste de {ratio} a 1, fácil de leer.',
      black: 'Lleva letras negras: contraste de {ratio} a 1, fácil de leer.',
    },
    paleOnLight: 'En una página clara el botón se ve mal ({ratio} a 1). Un color más oscuro destaca más.',
    paleOnDark: 'En una página oscura el botón se ve mal ({ratio} a 1). Un color más claro destaca más.',
    standsOut: 'Destaca en páginas claras y oscuras.',
    support: 'Dónde reciben ayuda los compradores',
    supportAbout: 'Se muestra debajo de cada pago. Deje vacío lo que no tenga.',
    supportEmail: 'Correo electrónico',
    supportUrl: 'Dirección web',
    books: 'Días y dinero',
    timeZone: 'Zona horaria en la que empiezan sus días',
    reportCurrency: 'Moneda de sus cifras',
    save: 'Guardar',
    preview: 'Vista previa',
    previewAbout: 'La página de pago real con lo que está guardado. En ella no se puede pulsar nada.',
    frame: 'Página de pago: {state}',
    states: {
      open: 'Cartera',
      phone: 'Teléfono',
      send: 'Transferencia',
      processing: 'Liquidando',
      paid: 'Pagado',
      short: 'De menos',
      expired: 'Caducado',
      canceled: 'Cancelado',
    },
    faults: {
      name: 'El nombre necesita de 1 a 100 caracteres que se puedan mostrar.',
      accentColor: 'El color son seis cifras hexadecimales, como #2b50d8.',
      supportEmail: 'Escriba un correo, como ayuda@tienda.example, o nada.',
      supportUrl: 'Escriba una dirección web que empiece por https://, o nada.',
      timeZone: 'Elija una zona horaria de la lista.',
      reportCurrency: 'Elija una moneda de la lista.',
      large:
        'El logotipo pesa más de 9 KB. Hágalo más pequeño, por ejemplo de 128 por 128 píxeles, y pruebe otra vez.',
      image: 'El logotipo no es una imagen PNG, JPEG ni WebP. Elija otro archivo.',
    },
  },
}
