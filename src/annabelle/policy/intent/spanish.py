"""How orders are given in Spanish."""

from __future__ import annotations

from typing import Final

from annabelle.policy.intent.forms import spanish, spoken

SPANISH: Final = spoken(
    marks="el la los las un una unos unas de del y o a al mi mis me te se tu tus para en con es son este esta esto "
    "ese esa "
    "eso que qué por porfa favor lo le les yo no sí si cuando cómo pon haz dile guarda manda envía responde borra "
    "apunta "
    "añade crea mueve lee mira busca puedes podrías quiero hay ya luego después también entonces mañana lunes viernes "
    "correo nota lista gracias hola todo toda",
    before="y|e|luego|después|también|entonces|ahora|si no|ok|okay|hey|hola|sí|vale|gracias|por favor|porfa|"
    "porfi|mejor|annabelle",
    condition=r"(?:si|cuando) [^,;?]{3,60}? (?:es|está|son|están|hay|va|funciona)(?: [\w'-]+){0,2}",
    forms={
        "send": spanish(
            "enviar mandar responder contestar reenviar compartir publicar invitar avisar informar confirmar "
            "agradecer/agradezc notificar remitir",
            r"(?:escrib[ea]|di|diga|pregunt[ae])(?:le|les|sel[oa]s?)|escribir(?:le|les)|decir(?:le|les|sel[oa])|"
            r"preguntar(?:le|les)|(?:escribe|pregunta|di) (?:[\w-]+ ){0,3}?(?:a|al) (?!mi\b|la nota|una nota|un "
            r"archivo)|haz(?:le|les)? (?:saber|llegar)|"
            r"d[ea](?:le|les) las gracias|pas[ae](?:le|les|sel[oa])|dile(?:s)?|acepta la invitacion|rechaza la "
            r"invitacion",
        ),
        "create": spanish(
            "crear añadir agregar redactar escribir generar preparar guardar anotar apuntar pon/ponga/poner "
            "haz/haga/hacer meter grabar elaborar incluir/incluy sacar tomar registrar almacenar conservar",
            r"resume .{1,80} en|quiero una? (?:nota|tarea|recordatorio|archivo|lista)|nuev[oa] (?:nota|tarea|evento|"
            r"cita)|toma nota",
        ),
        "update": spanish(
            "actualizar modificar cambiar mover/muev renombrar marcar~ archivar corregir/corrij corregir/corrig "
            "acortar "
            "mejorar reemplazar añadir copiar~ ordenar~ pasar posponer/pospong aplazar adelantar retrasar etiquetar "
            "meter tachar editar clasificar completar destacar sustituir/sustituy convertir/conviert pon/ponga/poner",
            r"escrib(?:e|a|ir) en (?:el|la|mi)|pospon(?:l[oa]s?|me)?|(?:saca|quita) .{1,60} de (?:la|"
            r"mi) bandeja(?: de entrada)?",
        ),
        "delete": spanish(
            "eliminar borrar cancelar quitar olvidar vaciar anular tachar desechar suprimir",
            r"(?:tir|ech|mand|pas|mov|muev)[ae](?:l[oa]s?)? .{0,60}a la (?:papelera|basura)|deshazte del?|date de "
            r"baja|da de baja",
        ),
        "schedule": spanish(
            "programar~ reservar~ agendar planificar bloquear",
            r"recuerda(?:me|mel[oa])|acuerdame|recordarme|pon(?:me|ga)?(?:l[oa])? .{1,60}(?:calendario|agenda)",
        ),
        "remember": spanish(
            "memorizar",
            r"recuerda(?! a\b)|acuerdate|ten(?:lo)? (?:en cuenta|presente)|no olvides que|no te olvides de que|"
            r"apunta que",
        ),
        "transfer": spanish("descargar bajar subir instalar importar exportar guardar adjuntar copiar~"),
        "pay": spanish("pagar comprar~ pedir/pid encargar abonar"),
        "run": spanish("ejecutar calcular analizar lanzar correr"),
        "control": spanish(
            "activar desactivar suscribir bloquear cambiar silenciar apagar encender/enciend",
            r"suscribete|suscribeme|llamame|a partir de ahora|desde ahora",
        ),
    },
)
