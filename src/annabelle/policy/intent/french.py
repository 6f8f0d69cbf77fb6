"""How orders are given in French."""

from __future__ import annotations

from typing import Final

from annabelle.policy.intent.forms import french, spoken

FRENCH: Final = spoken(
    marks="le la les l un une des de d du à au aux et ou en y mon ma mes moi toi lui leur son sa ses pour dans avec "
    "sur est "
    "sont c ce cet cette ça que qu qui je j tu il elle nous vous ne n pas stp svp plaît merci s si quand quoi comment "
    "pourquoi dis écris réponds envoie mets note ajoute crée fais supprime annule archive range peux pourrais veux "
    "puis ensuite après alors oui non bonjour salut demain lundi vendredi courriel",
    before="et|puis|ensuite|aussi|alors|après|sinon|maintenant|vite|juste|ok|okay|hey|salut|bonjour|oui|merci|"
    "stp|svp|s'il te pla[iî]t|s'il vous pla[iî]t|annabelle",
    condition=r"(?:si|quand) [^,;?]{3,60}? (?:est|sont|a|va|marche)(?: [\w'-]+){0,2}",
    forms={
        "send": french(
            "envoie/envoies/envoyez/envoyer transmets/transmettez/transmettre transfère/transférez/transférer "
            "réponds/repond/répondez/répondre publier partager inviter préviens/prévenez/prévenir informer "
            "remercier relancer avertis/avertissez/avertir renvoie/renvoyez/renvoyer confirmer",
            r"(?:écris|écrivez|écrire|dis|dites|dire|demande|demandez|demander)(?:-(?:lui|leur|le-lui))? (?:[\w-]+ "
            r"){0,3}?(?:à|aux?) (?!moi\b)|(?:écris|écrivez|dis|dites|demande|demandez)-(?:lui|leur|le-lui)|"
            r"fais(?:[- ](?:lui|leur))? (?:suivre|savoir|passer)|faites (?:suivre|savoir)|laisse un (?:mot|message) "
            r"à|tiens .{1,40} au courant|accepte l'invitation|décline l'invitation",
        ),
        "create": french(
            "crée/cree/créez/créer ajouter rédiger écris/écrivez/écrire générer génère/générez/générer préparer "
            "prépare/préparez/préparer fais/faites/faire enregistrer sauvegarder note~r mets/mettez/mettre garder "
            "conserver inscris/inscrivez/inscrire stocker composer dresser insérer consigner rajouter colle~r",
            r"résume .{1,80} (?:dans|en)|je (?:veux|voudrais) une?|fais[- ](?:moi|m'en|en)|prends? (?:note|en note)|"
            r"prends? une capture|nouve(?:au|lle) (?:note|tâche|rendez-vous|événement)",
        ),
        "update": french(
            "modifier renommer déplacer change~r mets/mettez/mettre corriger raccourcis/raccourcissez/raccourcir "
            "améliorer décaler avance~r repousser reporter archive~r marque~r remplacer ajouter range~r ranger coche~r "
            "copie~r classer étiqueter actualiser rajouter passe/passez/passer termine~r cocher complète/compléter "
            "trier transforme~r",
            r"écri(?:s|vez|re) dans (?:le|la|les|mon|ma|l')|(?:sors|sortez|enlève|enlevez|retire|"
            r"retirez) .{1,60} de (?:ma|la) boîte(?: de réception| mail)?|raye[rz]? .{1,60} de (?:la|ma) liste",
        ),
        "delete": french(
            "supprimer efface~r annuler retirer oublier vider enlève/enlevez/enlever jette/jetez/jeter "
            "raye/rayez/rayer vire/virez/virer décommande/décommander dégage/dégager",
            r"(?:mets|mettez|mettre|envoie|jette) .{1,60} (?:à|dans) la (?:corbeille|poubelle)|"
            r"désabonne-moi|débarrasse-(?:moi|toi) de",
        ),
        "schedule": french(
            "planifier programme~r réserve~r décaler reporter caler bloquer prévois/prévoyez/prévoir",
            r"rappelle[rz]?(?:[- ]le)?[- ]moi|me rappeler|fais-moi penser|prends? (?:un )?(?:rendez-vous|rdv)",
        ),
        "remember": french(
            "mémoriser retiens/retenez/retenir",
            r"souviens-toi|souvenez-vous|rappelle-toi|n'oublie pas que|garde en (?:tête|mémoire)|sache que|note que",
        ),
        "transfer": french(
            "télécharger installer importer exporter enregistrer sauvegarder joins/joignez/joindre copie~r "
            "récupère/récupérer"
        ),
        "pay": french("paie/paye/payez/payer commande~r achète/achetez/acheter règle/réglez/régler"),
        "run": french("exécuter lance~r calculer analyse~r démarre/démarrez/démarrer compte~r"),
        "control": french(
            "active~r désactiver abonner arrêter bloquer change~r éteins/éteignez/éteindre allume~r",
            r"appelle-moi|désormais|à partir de maintenant|abonne-moi",
        ),
    },
)
