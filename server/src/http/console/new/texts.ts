import type { CheckoutStatus } from '@farthing/sdk'
import type { Texts } from '../languages/pick.ts'

/** Why a payment could not be made, by its field or problem. */
export const faults = [
  'amount',
  'ambiguous',
  'currency',
  'description',
  'order',
  'used',
  'store_inactive',
  'wallet_required',
  'currency_unsupported',
  'rate_unavailable',
] as const
export type Fault = (typeof faults)[number]

type NewTexts = {
  readonly title: string
  readonly about: string
  readonly amount: string
  readonly currency: string
  readonly description: string
  readonly descriptionAbout: string
  readonly order: string
  readonly make: string
  readonly noWallet: string
  readonly noWalletAbout: string
  readonly toWallets: string
  readonly askOwner: string
  readonly faults: Readonly<Record<Fault, string>>
  readonly states: Readonly<Record<CheckoutStatus, { readonly title: string; readonly text: string }>>
  readonly scan: string
  readonly until: string
  readonly link: string
  readonly copy: string
  readonly copied: string
  readonly open: string
  readonly cancel: string
  readonly another: string
  readonly details: string
}

/** A payment made by hand: for chats and counters. */
export const newTexts: Texts<NewTexts> = {
  en: {
    title: 'New payment',
    about: 'Makes a link to a payment page. Send it, or show its code to the buyer.',
    amount: 'Amount',
    currency: 'Currency',
    description: 'What is it for?',
    descriptionAbout: 'The buyer reads it on the payment page. You may leave it empty.',
    order: 'Order number, if it has one',
    make: 'Make the link',
    noWallet: 'First, say where the money goes',
    noWalletAbout: 'A payment needs a wallet that receives it, and this store has none in use.',
    toWallets: 'Set up the wallet',
    askOwner: 'Ask an owner of the store to set up the wallet.',
    faults: {
      amount: 'Write an amount above zero, such as 12.50, with at most 6 digits after the point.',
      ambiguous:
        'This amount can be read in two ways, as thousands or as a fraction. Write thousands without a comma or point, such as 1500, and a fraction with two digits or four, such as 1.50 or 1.2340.',
      currency: 'Choose a currency.',
      description: 'The description is too long, or has characters that cannot be shown. Write up to 500.',
      order: 'The order number is too long, or has characters that cannot be shown. Write up to 255.',
      used: 'A link was made with this form already. If you need another, make it now.',
      store_inactive:
        'This store may not take payments yet: it waits for approval or for the proof of its wallet, or it is suspended.',
      wallet_required: 'This store has no wallet that can be paid now. Look at Wallets.',
      currency_unsupported: 'Nobody names a rate for this currency here. Choose another one.',
      rate_unavailable:
        'There is no current rate for this currency. Try again in a minute, or choose dollars.',
    },
    states: {
      OPEN: { title: 'Waiting', text: 'Nobody has paid yet.' },
      PROCESSING: { title: 'Settling', text: 'The payment is on its way. This takes a few seconds.' },
      COMPLETED: { title: 'Paid', text: 'The money is in your wallet.' },
      EXPIRED: { title: 'Expired', text: 'Nobody paid in time. Make another one if it is still wanted.' },
      CANCELED: { title: 'Canceled', text: 'The link cannot be paid any more.' },
    },
    scan: 'Code of the payment page',
    until: 'Can be paid until {time}.',
    link: 'Link',
    copy: 'Copy the link',
    copied: 'Copied',
    open: 'Open the payment page',
    cancel: 'Cancel it',
    another: 'Another payment',
    details: 'All about this payment',
  },
  es: {
    title: 'Nuevo pago',
    about: 'Crea un enlace a una página de pago. Envíelo o muestre su código al comprador.',
    amount: 'Importe',
    currency: 'Moneda',
    description: '¿Para qué es?',
    descriptionAbout: 'El comprador lo lee en la página de pago. Puede dejarlo vacío.',
    order: 'Número de pedido, si lo tiene',
    make: 'Crear el enlace',
    noWallet: 'Primero, diga adónde va el dinero',
    noWalletAbout: 'Un pago necesita una cartera que lo reciba, y esta tienda no tiene ninguna en uso.',
    toWallets: 'Preparar la cartera',
    askOwner: 'Pida a un propietario de la tienda que prepare la cartera.',
    faults: {
      amount: 'Escriba un importe mayor que cero, como 12.50, con 6 decimales como máximo.',
      ambiguous:
        'Este importe se puede leer de dos maneras, como miles o como decimales. Escriba los miles sin coma ni punto, como 1500, y los decimales con dos cifras o con cuatro, como 1,50 o 1,2340.',
      currency: 'Elija una moneda.',
      description:
        'La descripción es demasiado larga o tiene caracteres que no se pueden mostrar. Escriba hasta 500.',
      order:
        'El número de pedido es demasiado largo o tiene caracteres que no se pueden mostrar. Escriba hasta 255.',
      used: 'Con este formulario ya se creó un enlace. Si necesita otro, créelo ahora.',
      store_inactive:
        'Esta tienda aún no puede cobrar: espera la aprobación o la prueba de su cartera, o está suspendida.',
      wallet_required:
        'Esta tienda no tiene ninguna cartera a la que se pueda pagar ahora. Mire en Carteras.',
      currency_unsupported: 'Aquí nadie da un cambio para esta moneda. Elija otra.',
      rate_unavailable: 'No hay un cambio actual para esta moneda. Pruebe en un minuto o elija dólares.',
    },
    states: {
      OPEN: { title: 'Esperando', text: 'Todavía no ha pagado nadie.' },
      PROCESSING: { title: 'Liquidando', text: 'El pago está en camino. Tarda unos segundos.' },
      COMPLETED: { title: 'Pagado', text: 'El dinero está en su cartera.' },
      EXPIRED: { title: 'Caducado', text: 'Nadie pagó a tiempo. Cree otro si aún hace falta.' },
      CANCELED: { title: 'Cancelado', text: 'El enlace ya no se puede pagar.' },
    },
    scan: 'Código de la página de pago',
    until: 'Se puede pagar hasta {time}.',
    link: 'Enlace',
    copy: 'Copiar el enlace',
    copied: 'Copiado',
    open: 'Abrir la página de pago',
    cancel: 'Cancelarlo',
    another: 'Otro pago',
    details: 'Todo sobre este pago',
  },
}
